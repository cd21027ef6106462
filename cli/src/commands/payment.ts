import { type Disposition, formatUnits, type Network, type Payment } from '@farthing/sdk'
import { type Command, clientOf, limitsOf, take, textOf } from '../command.ts'
import { good, paint } from '../terminal.ts'

export const paymentCommands: readonly Command[] = [
  {
    name: 'payment list',
    arguments: '',
    summary: 'List payments to the store’s wallets, newest first',
    options: {
      disposition: { type: 'string', value: 'word', about: 'exact, late, underpaid, overpaid or unmatched' },
      checkout: { type: 'string', value: 'id', about: 'only payments for this checkout' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    fields: { disposition: '--disposition', checkoutId: '--checkout' },
    async run(call) {
      const disposition = textOf(call, 'disposition') as Disposition | undefined
      const checkoutId = textOf(call, 'checkout')
      const { most, limit } = limitsOf(call)
      const query = {
        limit,
        ...(disposition && { disposition }),
        ...(checkoutId !== undefined && { checkoutId }),
      }
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
    summary: 'Accept a payment for a checkout and complete the checkout',
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
    options: {},
    notes: ['A dismissed payment needs no further decision. Nothing is refunded.'],
    async run(call) {
      const payment = await clientOf(call.settings).payments.dismiss(call.positionals[0] ?? '')
      call.terminal.show(payment, () => [good('Dismissed')])
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
