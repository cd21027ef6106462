import { formatUnits, type Network, type Payment, type PaymentQuery } from '@farthing/sdk'
import { type Command, clientOf, limitsOf, queryOf, take, textOf } from '../command.ts'
import { good, paint } from '../terminal.ts'

const fields = {
  disposition: '--disposition',
  checkoutId: '--checkout',
  payer: '--payer',
  transaction: '--transaction',
  network: '--network',
  minAmount: '--min',
  maxAmount: '--max',
  createdFrom: '--from',
  createdBefore: '--before',
} as const

export const paymentCommands: readonly Command[] = [
  {
    name: 'payment list',
    arguments: '',
    summary: 'List payments to the store’s wallets, newest first',
    options: {
      disposition: { type: 'string', value: 'word', about: 'exact, late, underpaid, overpaid or unmatched' },
      checkout: { type: 'string', value: 'id', about: 'only payments for this checkout' },
      payer: { type: 'string', value: 'address', about: 'only payments from this address' },
      transaction: { type: 'string', value: 'hash', about: 'only payments in this transaction' },
      network: { type: 'string', value: 'caip2', about: 'only payments on this chain, such as eip155:8453' },
      min: { type: 'string', value: 'units', about: 'this many smallest units of the token or more' },
      max: { type: 'string', value: 'units', about: 'this many smallest units of the token or less' },
      from: { type: 'string', value: 'time', about: 'first seen at this time or later, in ISO 8601' },
      before: { type: 'string', value: 'time', about: 'first seen before this time' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    fields,
    async run(call) {
      const { most, limit } = limitsOf(call)
      const query: PaymentQuery = { limit, ...queryOf(call, fields) }
      const client = clientOf(call.settings)
      const payments = await take(client.payments.list(query), most)
      const networks = await client.networks.list()
      call.terminal.showAll(payments, 'No payments.', [
        { title: 'PAYMENT', cell: ({ id }) => id },
        { title: 'STATE', cell: stateOf, style: (payment) => stateStyles[stateOf(payment)] ?? 'yellow' },
        { title: 'AMOUNT', cell: (payment) => amountOf(payment, networks) },
        { title: 'FROM', cell: ({ payer }) => payer },
      ])
      if (payments.some((payment) => !(stateOf(payment) in stateStyles)))
        call.terminal.say(paint('dim', `\n${advice}`))
      return undefined
    },
  },
  {
    name: 'payment accept',
    arguments: '<paymentId>',
    summary: 'Accept a payment and complete a checkout with it',
    options: {
      checkout: { type: 'string', value: 'id', about: 'the checkout; not needed if the payment names one' },
    },
    async run(call) {
      const checkoutId = textOf(call, 'checkout')
      const [paymentId = ''] = call.positionals
      const body = checkoutId === undefined ? {} : { checkoutId }
      const payment = await clientOf(call.settings).payments.accept(paymentId, body)
      call.terminal.show(payment, () => [good(`Accepted for ${payment.checkoutId}`)])
      return undefined
    },
  },
  {
    name: 'payment dismiss',
    arguments: '<paymentId>',
    summary: 'Dismiss a payment',
    options: { note: { type: 'string', value: 'text', about: 'why; only your store sees it' } },
    notes: ['A dismissed payment needs no further decision. Nothing is refunded.'],
    async run(call) {
      const note = textOf(call, 'note')
      const body = note === undefined ? {} : { note }
      const payment = await clientOf(call.settings).payments.dismiss(call.positionals[0] ?? '', body)
      call.terminal.show(payment, () => [good('Dismissed')])
      return undefined
    },
  },
  {
    name: 'payment note',
    arguments: '<paymentId> [text]',
    summary: 'Add a private note to a payment',
    options: {},
    notes: ['Without a text, the note is removed.'],
    async run(call) {
      const [paymentId = '', text = null] = call.positionals
      const payment = await clientOf(call.settings).payments.note(paymentId, text)
      call.terminal.show(payment, () => [good(text === null ? 'Note removed' : 'Noted')])
      return undefined
    },
  },
]

const advice = 'Decide with farthing payment accept <id> --checkout <id> or farthing payment dismiss <id>.'

/** States in which a payment needs no decision. */
const stateStyles: Readonly<Record<string, 'green' | 'dim'>> = {
  exact: 'green',
  accepted: 'green',
  dismissed: 'dim',
}

function stateOf({ acceptedAt, dismissedAt, disposition }: Payment): string {
  return acceptedAt ? 'accepted' : dismissedAt ? 'dismissed' : disposition
}

function amountOf({ network, asset, amount }: Payment, networks: readonly Network[]): string {
  const known = networks
    .find((each) => each.network === network)
    ?.assets.find(({ address }) => address.toLowerCase() === asset.toLowerCase())
  return known ? `${formatUnits(amount, known.decimals)} ${known.symbol}` : `${amount} units`
}
