import type { Refund, RefundStatus } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import { type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { type Reader, showShort, showTime, showUnits } from '../formats.ts'
import { cut } from '../payments/list.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import { isYours, type Turn, turnOf } from './turn.ts'

export const statuses: readonly RefundStatus[] = [
  'REQUESTED',
  'SIGNED',
  'SENT',
  'COMPLETED',
  'DECLARED',
  'FAILED',
  'CANCELED',
]

export type Shown = {
  readonly status: RefundStatus | null
  readonly cursor: string | null
  readonly refunds: readonly Refund[]
  readonly nextCursor: string | null
  readonly reader: Reader
  readonly now: Date
}

export function renderList(request: FastifyRequest, shown: Shown): Html {
  const texts = textsOf(request).refunds
  const base = `/stores/${storeOf(request).storeId}/refunds`
  const { status, cursor, nextCursor, refunds } = shown
  const filter = (wanted: RefundStatus | null, text: string) =>
    html`<a class="filter" href="${addressOf(base, wanted)}"${wanted === status && html` aria-current="true"`}>${text}</a>`
  return html`<div class="head plain"><div><h1>${texts.title}</h1><p class="soft words">${texts.about}</p></div></div>
<div class="pane stack"><div class="row">${filter(null, texts.all)}${statuses.map((each) => filter(each, texts.statuses[each]))}</div>
<p class="live soft">${textsOf(request).frame.live}</p></div>
${refunds.length > 0 ? renderTable(request, refunds, shown) : renderNothing(request, texts, status !== null)}
${(cursor ?? nextCursor) !== null && html`<div class="ends">${cursor !== null ? html`<a class="button quiet" href="${addressOf(base, status)}">${texts.newest}</a>` : html`<span></span>`}${nextCursor !== null && html`<a class="button quiet" href="${addressOf(base, status, nextCursor)}">${texts.older}</a>`}</div>`}`
}

function addressOf(base: string, status: RefundStatus | null, cursor: string | null = null): string {
  const query = new URLSearchParams({ ...(status && { status }), ...(cursor && { cursor }) }).toString()
  return query === '' ? base : `${base}?${query}`
}

function renderNothing(request: FastifyRequest, texts: Texts['refunds'], isNarrow: boolean): Html {
  if (isNarrow) return html`<div class="pane empty"><p>${texts.emptyFound}</p></div>`
  const { storeId } = storeOf(request)
  return html`<section class="pane empty"><h2>${texts.empty}</h2><p class="soft">${texts.emptyAbout}</p><p><a class="button quiet" href="/stores/${storeId}/payments">${texts.toPayments}</a></p></section>`
}

function renderTable(request: FastifyRequest, refunds: readonly Refund[], { reader, now }: Shown): Html {
  const texts = textsOf(request).refunds
  const base = `/stores/${storeOf(request).storeId}/refunds`
  return html`<div class="table"><table class="cards">
<thead><tr><th scope="col">${texts.status}</th><th scope="col" class="num">${texts.amount}</th><th scope="col">${texts.turn}</th><th scope="col">${texts.order}</th><th scope="col">${texts.to}</th><th scope="col" class="num">${texts.when}</th></tr></thead>
<tbody>${refunds.map((refund) => {
    const { id, recipient, orderId, createdAt } = refund
    const turn = turnOf(refund)
    return html`<tr><td class="c2">${renderChip(texts, refund)}</td><td class="num c1"><a class="whole" href="${base}/${id}">${amountOf(reader, refund)}</a></td><td class="c3">${isYours(turn) ? html`<strong>${texts.turns[turn]}</strong>` : html`<span class="soft">${texts.turns[turn]}</span>`}</td><td>${orderId === null ? html`<span class="soft">–</span>` : html`<bdi>${cut(orderId)}</bdi>`}</td><td>${recipient === null ? html`<span class="soft">${texts.toNobody}</span>` : showShort(recipient)}</td><td class="num c4">${showTime(reader, new Date(createdAt), now)}</td></tr>
`
  })}</tbody></table></div>`
}

const tones: Readonly<Partial<Record<Turn, string>>> = {
  ...{ sign: ' bad', pay: ' bad', confirm: ' bad', link: ' bad', failed: ' bad' },
  ...{ moving: ' busy', buyer: ' busy', canceling: ' busy', done: ' good' },
}

export function renderChip(texts: Texts['refunds'], refund: Refund): Html {
  return html`<span class="chip${tones[turnOf(refund)] ?? ''}">${texts.statuses[refund.status]}</span>`
}

export function amountOf(reader: Reader, refund: Pick<Refund, 'network' | 'asset' | 'amount'>): string {
  const { symbol, decimals } = describeOption(refund)
  return showUnits(reader, BigInt(refund.amount), decimals, symbol)
}
