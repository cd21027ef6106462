import type { Actor } from '@farthing/sdk'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { listMemberships } from '../../members/rows.ts'
import { listNews, type News, type WalletChange } from '../../stores/change-rows.ts'
import { type Html, html } from '../page/html.ts'
import { formField } from './document.ts'
import { forStore, giveFormToken, sessionOf } from './visitor.ts'
import { when } from './when.ts'

/** More than anybody reads at once; the wallets' own page has them all. */
const newsMax = 20

/** What happened to the wallets of the member's stores, if they own them and have not said that they saw it. */
export async function renderNews(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Html | null> {
  const { member } = sessionOf(request)
  const owned = (await listMemberships(ctx.db, member.id)).filter(({ role }) => role === 'owner')
  const news = await Promise.all(
    owned.map(({ storeId }) => listNews(forStore(ctx, storeId).db, storeId, member.id, newsMax)),
  )
  if (news.every(({ length }) => length === 0)) return null
  const field = formField(giveFormToken(ctx, request, reply))
  return html`${news.map((each) => renderStore(each, field))}`
}

function renderStore(news: readonly News[], field: Html): Html {
  const [newest] = news
  if (!newest) return html``
  const { storeId, storeName, at } = newest
  return html`<div class="notice" role="status"><p><strong>Wallets of ${storeName}</strong></p>
${news.map((each) => html`<p>${describeChange(each)} <small>${when(each.at)}</small></p>`)}
<div class="buttons"><a class="button" href="/stores/${storeId}/wallets">Look at the wallets</a>
<form method="post" action="/stores/${storeId}/wallets/seen">${field}<input type="hidden" name="until" value="${at.toISOString()}"><button class="quiet">I know</button></form></div></div>`
}

/** What was asked for, and what became of it. */
export function describeChange({ kind, wallet, actor, madeAt, confirmedBy, undoneBy }: WalletChange): Html {
  const address = html`<bdi class="address">${wallet.address}</bdi>`
  if (madeAt === null)
    return html`To ${kind === 'use' ? 'be paid to' : 'stop using'} ${address}: asked for by ${nameActor(actor)}. It waits for an owner.`
  return html`${address} was ${kind === 'use' ? 'put to use' : 'taken out of use'} by ${nameActor(actor)}${
    confirmedBy && html`, confirmed by ${nameActor(confirmedBy)}`
  }.${undoneBy && html` Undone by ${nameActor(undoneBy)}.`}`
}

export function nameActor({ type, id, name }: Actor): Html {
  if (type === 'key') return html`key ${name ? html`“${name}” ` : null}<bdi>${id}</bdi>`
  return type === 'member' ? html`${name ?? id}` : html`${type} ${name ?? id}`
}
