import type { SimulatedCase } from '@farthing/sdk'
import { isSimulated } from '../../../chains/families.ts'
import type { CheckoutView } from '../../../checkouts/view.ts'
import { type Html, html } from '../html.ts'

/**
 * What the developer of a shop can make happen on the page. The cases that only the payer hears of are left out, because
 * a form has no answer to show. In English: no buyer sees this.
 */
const offered: Readonly<Partial<Record<SimulatedCase, string>>> = {
  'payment.paid': 'It is paid',
  'payment.underpaid': 'Too little is sent',
  'payment.overpaid': 'Too much is sent',
  'payment.twice': 'It is paid twice',
  'payment.late': 'It expires, then it is paid',
  'checkout.expired': 'It expires',
  'payment.reorged': 'The chain takes the payment back, and brings it again',
  'payment.reversed': 'The chain takes the payment back for good',
  'payment.unknown_then_paid': 'Nobody knows for a while, then it is paid',
  'payment.unknown_then_dead': 'Nobody knows for a while, then it is not paid',
}

/** The case that a form names; null if it names none. */
export function caseOf(text: string | null): SimulatedCase | null {
  return (Object.keys(offered) as SimulatedCase[]).find((each) => each === text) ?? null
}

/** The panel of a test store's page; null on every other page. */
export function renderSimulate({ checkout, store }: CheckoutView, path: string): Html | null {
  if (store.mode !== 'test' || !checkout.options.some(({ network }) => isSimulated(network))) return null
  const buttons = Object.entries(offered).map(
    ([name, says]) => html`<button class="quiet" name="case" value="${name}">${says}</button>`,
  )
  return html`<section class="sent" id="simulate" lang="en" dir="ltr"><h3>This is a test store. What should happen?</h3>
<form method="post" action="${path}/${checkout.id}/simulate"><div class="others">${buttons}</div></form></section>`
}

/** The view of those who pay: with wallets, if there is a network for them. */
export function withoutSimulated(view: CheckoutView): CheckoutView {
  const options = view.checkout.options.filter(({ network }) => !isSimulated(network))
  return options.length === 0 ? view : { ...view, checkout: { ...view.checkout, options } }
}
