import type { Checkout, CheckoutQuery, CheckoutStatus, StoreCheckout } from '@farthing/sdk'
import {
  type Call,
  type Command,
  clientOf,
  countOf,
  limitsOf,
  metadataOf,
  queryOf,
  take,
  textOf,
} from '../command.ts'
import { good, type Terminal, timeOf } from '../terminal.ts'

const fields = {
  status: '--status',
  orderId: '--order',
  linkId: '--link',
  priceCurrency: '--currency',
  minPrice: '--min',
  maxPrice: '--max',
  createdFrom: '--from',
  createdBefore: '--before',
} as const

export const checkoutCommands: readonly Command[] = [
  {
    name: 'checkout create',
    arguments: '<orderId> <amount> [currency]',
    summary: 'Create a checkout for an order, in USD by default',
    options: {
      redirect: { type: 'string', value: 'url', about: 'where the buyer goes after paying' },
      cancel: { type: 'string', value: 'url', about: 'where a buyer can go back to without paying' },
      expires: { type: 'string', value: 'seconds', about: 'lifetime, 300 to 604800' },
      description: { type: 'string', value: 'text', about: 'what is paid for; the buyer sees it' },
      metadata: {
        type: 'string',
        multiple: true,
        value: 'name=value',
        about: 'a value of your own, unseen by buyers; repeatable',
      },
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
      description: '--description',
      metadata: '--metadata',
      'Idempotency-Key': '--key',
    },
    notes: ['  farthing checkout create order-1 12.50 EUR'],
    async run(call) {
      const [orderId = '', priceAmount = '', priceCurrency = 'USD'] = call.positionals
      const successRedirectUrl = textOf(call, 'redirect')
      const cancelUrl = textOf(call, 'cancel')
      const expiresInSeconds = countOf(call, 'expires', 1, 604_800)
      const description = textOf(call, 'description')
      const metadata = metadataOf(call)
      const idempotencyKey = textOf(call, 'key')
      const checkout = await clientOf(call.settings).checkouts.create(
        {
          orderId,
          priceAmount,
          priceCurrency,
          ...(successRedirectUrl !== undefined && { successRedirectUrl }),
          ...(cancelUrl !== undefined && { cancelUrl }),
          ...(expiresInSeconds !== undefined && { expiresInSeconds }),
          ...(description !== undefined && { description }),
          ...(metadata && { metadata }),
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
      link: { type: 'string', value: 'linkId', about: 'only checkouts of this link' },
      currency: { type: 'string', value: 'code', about: 'only prices in this currency' },
      min: { type: 'string', value: 'price', about: 'this price or more; needs --currency' },
      max: { type: 'string', value: 'price', about: 'this price or less; needs --currency' },
      from: { type: 'string', value: 'time', about: 'created at this time or later, in ISO 8601' },
      before: { type: 'string', value: 'time', about: 'created before this time' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    fields,
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
  const { most, limit } = limitsOf(call)
  const query: CheckoutQuery = { limit, ...queryOf(call, fields), ...(status && { status }) }
  const checkouts = await take(clientOf(call.settings).checkouts.list(query), most)
  call.terminal.showAll(checkouts, 'No checkouts.', [
    { title: 'CHECKOUT', cell: ({ id }) => id },
    { title: 'STATUS', cell: (each) => each.status, style: (each) => statusStyles[each.status] },
    { title: 'PRICE', cell: ({ priceAmount, priceCurrency }) => `${priceAmount} ${priceCurrency}` },
    { title: 'ORDER', cell: (each) => each.orderId },
  ])
}

function show(terminal: Terminal, checkout: Checkout & Partial<StoreCheckout>, headline?: string): void {
  terminal.show(checkout, () => [
    ...(headline === undefined ? [] : [headline, '']),
    ...terminal.facts([
      ['checkout', checkout.id],
      ['status', checkout.status, statusStyles[checkout.status]],
      ['price', `${checkout.priceAmount} ${checkout.priceCurrency}`],
      ['order', checkout.orderId],
      ...(checkout.description === undefined ? [] : ([['for', checkout.description]] as const)),
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
