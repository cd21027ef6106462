import type { Disposition, Payment } from '@farthing/sdk'
import { type Command, clientOf, countOf, textOf } from '../command.ts'
import { good, paint, type Terminal } from '../terminal.ts'

export const paymentCommands: readonly Command[] = [
  {
    name: 'payment list',
    arguments: '',
    summary: 'List what arrived at the store’s wallets, newest first',
    options: {
      disposition: { type: 'string', value: 'word', about: 'exact, late, underpaid, overpaid or unmatched' },
      checkout: { type: 'string', value: 'id', about: 'of this checkout' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    async run(call) {
      const { terminal } = call
      const disposition = textOf(call, 'disposition') as Disposition | undefined
      const checkoutId = textOf(call, 'checkout')
      const limit = countOf(call, 'limit', 100_000) ?? 20
      const query = { ...(disposition && { disposition }), ...(checkoutId !== undefined && { checkoutId }) }
      const client = clientOf(call.settings)
      const payments: Payment[] = []
      for await (const payment of client.payments.list({ ...query, limit: Math.min(limit, 100) || 1 })) {
        if (payments.push(payment) >= limit) break
      }
      if (!terminal.isText) for (const payment of payments) terminal.show(payment, () => [])
      if (payments.length === 0) terminal.say('No payments.')
      else if (terminal.isText) terminal.say(tableOf(terminal, payments, await decimalsOf(client)).join('\n'))
      return undefined
    },
  },
  {
    name: 'payment accept',
    arguments: '<paymentId>',
    summary: 'Take a payment for a checkout and complete it',
    options: {
      checkout: { type: 'string', value: 'id', about: 'which; may be left out where the payment has one' },
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
    summary: 'Say that nothing more is to be done about a payment',
    options: {},
    async run(call) {
      const payment = await clientOf(call.settings).payments.dismiss(call.positionals[0] ?? '')
      call.terminal.show(payment, () => [good('Dismissed')])
      return undefined
    },
  },
]

type Decimals = ReadonlyMap<string, { readonly symbol: string; readonly decimals: number }>

async function decimalsOf(client: ReturnType<typeof clientOf>): Promise<Decimals> {
  const networks = await client.networks.list()
  return new Map(
    networks.flatMap(({ network, assets }) =>
      assets.map((asset) => [`${network} ${asset.address.toLowerCase()}`, asset] as const),
    ),
  )
}

function tableOf(terminal: Terminal, payments: readonly Payment[], decimals: Decimals): string[] {
  const isOpen = (payment: Payment) =>
    payment.disposition !== 'exact' && payment.acceptedAt === null && payment.dismissedAt === null
  const lines = terminal.table([
    { title: 'PAYMENT', cells: payments.map(({ id }) => id) },
    {
      title: 'STATE',
      cells: payments.map((payment) =>
        payment.acceptedAt ? 'accepted' : payment.dismissedAt ? 'dismissed' : payment.disposition,
      ),
      style: (cell) => (/exact|accepted/.test(cell) ? 'green' : cell === 'dismissed' ? 'dim' : 'yellow'),
    },
    { title: 'AMOUNT', cells: payments.map((payment) => amountOf(payment, decimals)) },
    { title: 'FROM', cells: payments.map(({ payer }) => payer) },
  ])
  if (payments.some(isOpen))
    lines.push(
      '',
      paint('dim', 'farthing payment accept <id> --checkout <id>, or farthing payment dismiss <id>'),
    )
  return lines
}

function amountOf({ network, asset, amount }: Payment, known: Decimals): string {
  const { symbol, decimals } = known.get(`${network} ${asset.toLowerCase()}`) ?? {
    symbol: 'units',
    decimals: 0,
  }
  const digits = amount.padStart(decimals + 1, '0')
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return decimals === 0
    ? `${amount} ${symbol}`
    : `${digits.slice(0, digits.length - decimals)}.${fraction.padEnd(2, '0')} ${symbol}`
}
