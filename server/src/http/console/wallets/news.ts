import type { Actor } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { listNews, type News, type WalletChange } from '../../../stores/change.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Locale, localeOf, showMinute } from '../formats.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { forStore, sessionOf } from '../visitor.ts'

/** More than an owner reads at once; the wallets' own page has them all. */
const newsMax = 20

/**
 * Wallet changes that an owner has not put away yet: of the store whose page it is, or on other pages of all stores that
 * the member owns.
 */
export async function renderNews(ctx: Context, request: FastifyRequest, field: Html): Promise<Html | null> {
  const { member } = sessionOf(request)
  const { stores, store } = request.visitor
  const owned = (store ? [store] : stores).filter(({ role }) => role === 'owner')
  const news = await Promise.all(
    owned.map(({ storeId }) => listNews(forStore(ctx, storeId).db, storeId, member.id, newsMax)),
  )
  if (news.every(({ length }) => length === 0)) return null
  return html`${news.map((each) => renderStore(each, field, textsOf(request), localeOf(request)))}`
}

function renderStore(news: readonly News[], field: Html, texts: Texts, locale: Locale): Html {
  const [newest] = news
  if (!newest) return html``
  const { storeId, storeName, at } = newest
  const lines = news.map(
    (each) => html`<p>${describeChange(each, texts)} <small>${showMinute(locale, each.at)}</small></p>`,
  )
  const { title, look, known } = texts.wallets
  const path = `/stores/${storeId}/wallets`
  const hidden = html`${field}<input type="hidden" name="storeId" value="${storeId}">
<input type="hidden" name="until" value="${at.toISOString()}">`
  return html`<div class="note" role="status"><p><strong>${fill(title, { store: storeName })}</strong></p>
${lines}
<div class="buttons"><a class="button" href="${path}">${look}</a>
<form method="post" action="${path}/seen" data-confirm="wallet.known">${hidden}
<button class="quiet">${known}</button></form></div></div>`
}

/** What was asked for, and what became of it. */
export function describeChange(change: WalletChange, all: Texts): Html {
  const { kind, wallet, actor, madeAt, confirmedBy, undoneBy } = change
  const { wallets: texts } = all
  const parts = {
    address: html`<bdi class="address">${wallet.address}</bdi>`,
    who: nameActor(actor, all),
  }
  if (madeAt === null) return fill(kind === 'use' ? texts.toUse : texts.toRetire, parts)
  const by = (text: string, who: Actor | null) => who && html` ${fill(text, { who: nameActor(who, all) })}`
  const done = fill(kind === 'use' ? texts.used : texts.retired, parts)
  return html`${done}${by(texts.confirmedBy, confirmedBy)}${by(texts.undoneBy, undoneBy)}`
}

export function nameActor({ type, id, name }: Actor, { wallets: texts }: Texts): Html {
  const text = type === 'key' && name !== null ? texts.namedKey : texts.actor[type]
  return fill(text, { id: html`<bdi>${id}</bdi>`, name: html`<bdi>${name ?? id}</bdi>` })
}
