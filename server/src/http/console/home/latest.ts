import { tokenOf } from '../../../checkouts/rollups/rollup.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showMoney, showTime, showUnits } from '../formats.ts'
import type { Home, Latest } from './read.ts'
import type { Writer } from './writer.ts'

const tones: Readonly<Record<Latest['state'], string>> = {
  paid: 'chip good',
  settling: 'chip busy',
  late: 'chip bad',
  underpaid: 'chip bad',
  overpaid: 'chip bad',
  unmatched: 'chip bad',
  reversed: 'chip bad',
  refunded: 'chip',
  partlyRefunded: 'chip',
}

export function renderLatest(home: Home, writer: Writer, base: string): Html {
  const { texts } = writer
  return html`<div class="row apart"><h2>${texts.latest}</h2>
<a class="button quiet tiny" href="${base}/payments">${texts.all}</a></div>
<dl class="list latest">${home.latest.map((each) => renderOne(each, home, writer, base))}</dl>`
}

function renderOne(latest: Latest, { now }: Home, { texts, locale }: Writer, base: string): Html {
  const { checkout, payment, state, at } = latest
  const name = checkout
    ? fill(texts.order, { id: html`<bdi>${checkout.orderId}</bdi>` })
    : html`${texts.noOrder}`
  const token = payment && tokenOf(payment)
  // What arrived, where that is not the price.
  const isPrice = checkout && (state === 'paid' || state === 'settling' || state === 'partlyRefunded')
  const amount = isPrice
    ? showMoney(locale, checkout.priceAmount, checkout.priceCurrency)
    : payment && token && showUnits(locale, BigInt(payment.amount), token.decimals, token.symbol)
  const path = checkout ? `checkouts/${checkout.id}` : `payments/${latest.paymentId}`
  const link = html`<a href="${base}/${path}">${name}</a>`
  return html`<div><dt>${link}&ensp;<span class="${tones[state]}">${texts.states[state]}</span></dt>
<dd><b>${amount ?? null}</b> <span class="soft">${showTime(locale, at, now)}</span></dd></div>`
}
