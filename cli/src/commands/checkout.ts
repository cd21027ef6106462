import type { Checkout, CheckoutStatus, StoreCheckout } from '@farthing/sdk'
import { type Call, type Command, clientOf, countOf, limitsOf, take, textOf } from '../command.ts'
import { good, type Terminal, timeOf } from '../terminal.ts'

export const checkoutCommands: readonly Command[] = [
  {
    name: 'checkout create',
    arguments: '<orderId> <amount> [currency]',
    summary: 'Create a checkout for an order; the default currency is USD',
    options: {
      redirect: { type: 'string', value: 'url', about: 'where the buyer goes after paying' },
      cancel: { type: 'string', value: 'url', about: 'where a buyer who does not pay can go back to' },
      expires: { type: 'string', value: 'seconds', about: 'lifetime, 300 to 604800' },
      key: {
        type: 'string',
        value: 'text',
        about: 'idempotency key: reusing it returns the same checkout',
      },
    },
    fields: {
      successRedirectUrl: '--redirect',
      cancelUrl: '--cancel',
      expiresInSeconds: '--expires',
      'Idempotency-Key': '--key',
    },
    notes: ['  farthing checkout create order-1 12.50 EUR'],
    async run(call) {
      const [orderId = '', priceAmount = '', priceCurrency = 'USD'] = call.positionals
      const successRedirectUrl = textOf(call, 'redirect')
      const cancelUrl = textOf(call, 'cancel')
      const expiresInSeconds = countOf(call, 'expires', 300, 604_800)
      const idempotencyKey = textOf(call, 'key')
      const checkout = await clientOf(call.settings).checkouts.create(
        {
          orderId,
          priceAmount,
          priceCurrency,
          ...(successRedirectUrl !== undefined && { successRedirectUrl }),
          ...(cancelUrl !== undefined && { cancelUrl }),
          ...(expiresInSeconds !== undefined && { expiresInSeconds }),
        },
        idempotencyKey === undefined ? {} : { idempotencyKey },
      )
      show(call.terminal, checkout, good('Checkout created'))
      return undefined
    },
  },
  {
    name: 'checkout get',
    arguments: '<checkoutId>',
    summary: 'Show a checkout and its payment',
    options: {},
    async run(call) {
      show(call.terminal, await clientOf(call.settings).checkouts.get(call.positionals[0] ?? ''))
      return undefined
    },
  },
  {
    name: 'checkout list',
    arguments: '',
    summary: 'List checkouts, newest first',
    options: {
      status: { type: 'string', value: 'status', about: 'OPEN, PROCESSING, COMPLETED, EXPIRED or CANCELED' },
      order: { type: 'string', value: 'orderId', about: 'only checkouts of this order' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    fields: { status: '--status', orderId: '--order' },
    run: list,
  },
  {
    name: 'checkout cancel',
    arguments: '<checkoutId>',
    summary: 'Cancel an unpaid checkout',
    options: {},
    async run(call) {
      const checkout = await clientOf(call.settings).checkouts.cancel(call.positionals[0] ?? '')
      show(call.terminal, checkout, good('Checkout canceled'))
      return undefined
    },
  },
]

const statusStyles = {
  OPEN: 'cyan',
  PROCESSING: 'yellow',
  COMPLETED: 'green',
  EXPIRED: 'dim',
  CANCELED: 'dim',
} as const satisfies Record<CheckoutStatus, string>

async function list(call: Call): Promise<undefined> {
  const status = textOf(call, 'status')?.toUpperCase() as CheckoutStatus | undefined
  const orderId = textOf(call, 'order')
  const { most, limit } = limitsOf(call)
  const query = { limit, ...(status && { status }), ...(orderId !== undefined && { orderId }) }
  const checkouts = await take(clientOf(call.settings).checkouts.list(query), most)
  call.terminal.showAll(checkouts, 'No checkouts.', [
    { title: 'CHECKOUT', cell: ({ id }) => id },
    { title: 'STATUS', cell: (each) => each.status, style: (each) => statusStyles[each.status] },
    { title: 'PRICE', cell: ({ priceAmount, priceCurrency }) => `${priceAmount} ${priceCurrency}` },
    { title: 'ORDER', cell: (each) => each.orderId },
  ])
}

function show(
  terminal: Terminal,
  checkout: Checkout & { payment?: StoreCheckout['payment'] },
  headline?: string,
): void {
  terminal.show(checkout, () => [
    ...(headline === undefined ? [] : [headline, '']),
    ...terminal.facts([
      ['checkout', checkout.id],
      ['status', checkout.status, statusStyles[checkout.status]],
      ['price', `${checkout.priceAmount} ${checkout.priceCurrency}`],
      ['order', checkout.orderId],
      ['expires', timeOf(checkout.expiresAt)],
      ['pay at', checkout.checkoutUrl, 'underline'],
      ...(checkout.payment
        ? ([
            ['paid by', checkout.payment.payer],
            ['finality', checkout.payment.finality],
            ['transaction', checkout.payment.transaction],
          ] as const)
        : []),
    ]),
  ])
}
