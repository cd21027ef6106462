import type { Actor } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { listNews, type News, type WalletChange } from '../../stores/change-rows.ts'
import { fill, type Html, html } from '../page/html.ts'
import { type Language, languageOf } from './texts/choose.ts'
import { forStore, sessionOf } from './visitor.ts'
import { when } from './when.ts'

/** More than anybody reads at once; the wallets' own page has them all. */
const newsMax = 20

/**
 * What happened to the wallets of the store, or outside of one to those of all the member's stores, if they own them and
 * have not said that they saw it.
 */
export async function renderNews(ctx: Context, request: FastifyRequest, field: Html): Promise<Html | null> {
  const { member } = sessionOf(request)
  const { stores, store } = request.visitor
  const owned = (store ? [store] : stores).filter(({ role }) => role === 'owner')
  const news = await Promise.all(
    owned.map(({ storeId }) => listNews(forStore(ctx, storeId).db, storeId, member.id, newsMax)),
  )
  if (news.every(({ length }) => length === 0)) return null
  return html`${news.map((each) => renderStore(each, field, languageOf(request)))}`
}

function renderStore(news: readonly News[], field: Html, language: Language): Html {
  const [newest] = news
  if (!newest) return html``
  const { storeId, storeName, at } = newest
  const { wallets: texts } = language.texts
  return html`<div class="note" role="status"><p><strong>${fill(texts.title, { store: storeName })}</strong></p>
${news.map((each) => html`<p>${describeChange(each, language)} <small>${when(each.at, language)}</small></p>`)}
<div class="buttons"><a class="button" href="/stores/${storeId}/wallets">${texts.look}</a>
<form method="post" action="/stores/${storeId}/wallets/seen" data-confirm="wallet.known">${field}<input type="hidden" name="storeId" value="${storeId}"><input type="hidden" name="until" value="${at.toISOString()}"><button class="quiet">${texts.known}</button></form></div></div>`
}

/** What was asked for, and what became of it. */
export function describeChange(change: WalletChange, language: Language): Html {
  const { kind, wallet, actor, madeAt, confirmedBy, undoneBy } = change
  const { wallets: texts } = language.texts
  const parts = {
    address: html`<bdi class="address">${wallet.address}</bdi>`,
    who: nameActor(actor, language),
  }
  if (madeAt === null) return fill(kind === 'use' ? texts.toUse : texts.toRetire, parts)
  const by = (text: string, who: Actor | null) =>
    who && html` ${fill(text, { who: nameActor(who, language) })}`
  return html`${fill(kind === 'use' ? texts.used : texts.retired, parts)}${by(texts.confirmedBy, confirmedBy)}${by(texts.undoneBy, undoneBy)}`
}

export function nameActor({ type, id, name }: Actor, { texts }: Language): Html {
  const text = type === 'key' && name !== null ? texts.wallets.namedKey : texts.wallets.actor[type]
  return fill(text, { id: html`<bdi>${id}</bdi>`, name: html`<bdi>${name ?? id}</bdi>` })
}
