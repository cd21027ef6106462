import { readFile } from 'node:fs/promises'
import {
  type CreateRefund,
  type FarthingClient,
  formatUnits,
  type Network,
  parseUnits,
  type Refund,
  RefundMismatch,
  type RefundStatus,
  type RefundWay,
} from '@farthing/sdk'
import { type Asset, knownAssets, type Signer } from '@farthing/sdk/pay'
import { ask } from '../ask.ts'
import { type Call, type Command, clientOf, limitsOf, queryOf, take, textOf, UsageError } from '../command.ts'
import { keptRefundsIn } from '../kept.ts'
import { openWallet } from '../open-wallet.ts'
import { bad, good, paint, type Terminal, wrap } from '../terminal.ts'

/** About the time that a network needs until a transfer is safe. The outcome can be read later too. */
const waitMs = 120_000
const exitCodes: Readonly<Partial<Record<RefundStatus, number>>> = {
  FAILED: 1,
  CANCELED: 1,
  SIGNED: 3,
  SENT: 3,
}

const signing = {
  'key-file': { type: 'string', value: 'file', about: 'the key of the wallet that received the payment' },
  to: { type: 'string', value: 'address', about: 'sign only if it goes to this address' },
  yes: { type: 'boolean', short: 'y', about: 'sign without asking; needs --amount and --to' },
} as const
const signingNotes = [
  'The wallet that was paid signs, by --key-file or FARTHING_PRIVATE_KEY.',
  'Nothing is signed unless the server asks for this amount to this recipient.',
  'What was signed for a refund is kept: a second run signs the same or nothing.',
  'Exit codes: 0 done, 1 refused or failed, 3 on its way: see farthing refunds.',
]
const listFields = { paymentId: '--payment', checkoutId: '--checkout', status: '--status' } as const

export const refundCommands: readonly Command[] = [
  {
    name: 'refund sign',
    arguments: '<refundId>',
    summary: 'Sign a refund with the wallet that was paid',
    options: {
      amount: { type: 'string', value: 'amount', about: 'sign only if it is this much, such as 2.50' },
      ...signing,
    },
    notes: signingNotes,
    async run(call) {
      const client = clientOf(call.settings)
      const wallet = await walletOf(call)
      if (!wallet) throw new UsageError('Pass --key-file, or set FARTHING_PRIVATE_KEY.')
      refuseUnasked(call)
      const refund = await client.refunds.get(call.positionals[0] ?? '')
      return await signAndShow(call, client, refund, wallet)
    },
  },
  {
    name: 'refund cancel',
    arguments: '<refundId>',
    summary: 'Cancel an unsigned refund',
    options: {},
    async run({ terminal, settings, positionals }) {
      const refund = await clientOf(settings).refunds.cancel(positionals[0] ?? '')
      terminal.show(refund, () => [
        refund.isCanceling
          ? `${paint('yellow', '…')} It will be canceled once a signature for it would have expired.`
          : good('Canceled'),
      ])
      return undefined
    },
  },
  {
    name: 'refund sent',
    arguments: '<refundId> [transaction]',
    summary: 'Record a refund you sent yourself',
    options: {
      reference: {
        type: 'string',
        value: 'text',
        about: 'instead of a transaction: evidence that only you can check',
      },
    },
    notes: ['A transaction proves the refund. A reference is recorded as your statement.'],
    async run(call) {
      const [refundId = '', transaction] = call.positionals
      const reference = textOf(call, 'reference')
      if ((transaction === undefined) === (reference === undefined))
        throw new UsageError('Pass the transaction’s hash, or --reference.')
      const client = clientOf(call.settings)
      const named = transaction === undefined ? { reference: reference ?? '' } : { transaction }
      return await showRefund(call.terminal, client, await client.refunds.name(refundId, named))
    },
  },
  {
    name: 'refund request-address',
    arguments: '<refundId>',
    summary: 'Make a link for the buyer to name an address',
    options: {},
    notes: ['Send it to the buyer. A member then confirms the address in the console.'],
    async run({ terminal, settings, positionals }) {
      const link = await clientOf(settings).refunds.requestAddress(positionals[0] ?? '')
      terminal.show(link, () => [link.url])
      return undefined
    },
  },
  {
    name: 'refund',
    arguments: '<paymentId>',
    summary: 'Refund a payment, or part of it, to its payer',
    options: {
      amount: {
        type: 'string',
        value: 'amount',
        about: 'in the token, such as 2.50; default all that is left',
      },
      reason: { type: 'string', value: 'text', about: 'why; the buyer reads it' },
      way: { type: 'string', value: 'way', about: 'signed (default), or self-sent: you send it yourself' },
      key: { type: 'string', value: 'text', about: 'repeating it with the same key refunds once' },
      ...signing,
    },
    fields: { amount: '--amount', reason: '--reason', way: '--way' },
    notes: ['Without a key, the refund waits to be signed in the console.', ...signingNotes],
    async run(call) {
      const { terminal } = call
      const client = clientOf(call.settings)
      const [paymentId = ''] = call.positionals
      const way = textOf(call, 'way')
      const wallet = way === 'self-sent' ? null : await walletOf(call)
      if (wallet) refuseUnasked(call)
      const payment = await client.payments.get(paymentId)
      if (wallet && wallet.address.toLowerCase() !== payment.payTo.toLowerCase())
        throw new UsageError(
          `The key is that of ${wallet.address}, but the payment went to ${payment.payTo}.`,
        )
      const amount = textOf(call, 'amount')
      const asked: CreateRefund = {
        ...(amount !== undefined && { amount: unitsOf(amount, payment) }),
        ...(textOf(call, 'reason') !== undefined && { reason: String(textOf(call, 'reason')) }),
        ...(way !== undefined && { way: way as RefundWay }),
      }
      const idempotencyKey = textOf(call, 'key')
      const refund = await client.refunds.create(paymentId, asked, idempotencyKey ? { idempotencyKey } : {})
      terminal.say(good(`Requested ${paint('dim', refund.id)}`))
      if (wallet && refund.recipient !== null) return await signAndShow(call, client, refund, wallet)
      return await showRefund(terminal, client, refund)
    },
  },
  {
    name: 'refunds',
    arguments: '',
    summary: 'List refunds, newest first',
    options: {
      payment: { type: 'string', value: 'id', about: 'only refunds of this payment' },
      checkout: { type: 'string', value: 'id', about: 'only refunds of this checkout' },
      status: { type: 'string', value: 'status', about: 'requested, signed, sent, completed, …' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    fields: listFields,
    async run(call) {
      const { most, limit } = limitsOf(call)
      const { status, ...query } = queryOf(call, listFields)
      const client = clientOf(call.settings)
      const refunds = await take(
        client.refunds.list({
          limit,
          ...query,
          ...(status !== undefined && { status: status.toUpperCase() as RefundStatus }),
        }),
        most,
      )
      const networks = await client.networks.list()
      call.terminal.showAll(refunds, 'No refunds.', [
        { title: 'REFUND', cell: ({ id }) => id },
        { title: 'STATUS', cell: statusOf, style: ({ status: each }) => styles[each] ?? 'yellow' },
        { title: 'AMOUNT', cell: (refund) => amountOf(refund, networks) },
        { title: 'TO', cell: ({ recipient }) => recipient ?? 'not known yet' },
      ])
      return undefined
    },
  },
]

const styles: Readonly<Partial<Record<RefundStatus, 'green' | 'dim' | 'red'>>> = {
  COMPLETED: 'green',
  DECLARED: 'green',
  CANCELED: 'dim',
  FAILED: 'red',
}

/** The wallet that the call names; null if it names none. */
async function walletOf(call: Call): Promise<Signer | null> {
  const file = textOf(call, 'key-file')
  const key = file === undefined ? call.settings.privateKey : await readKey(file)
  if (!key) return null
  return await openWallet(
    key,
    file === undefined
      ? 'FARTHING_PRIVATE_KEY must be the key of the wallet that received the payment'
      : `${file} must hold the key of the wallet that received the payment`,
  )
}

async function readKey(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

/**
 * Runs before anything is created, so that a script that forgot an option leaves nothing behind. Without a person to
 * check them, amount and recipient must come from the caller, because an attacker may control the server.
 */
function refuseUnasked(call: Call): void {
  if (!call.values.yes && !call.terminal.isInteractive)
    throw new UsageError('This is not a terminal, so I can’t ask you. Pass --yes, --amount and --to.')
  const lacking = ['amount', 'to'].filter((name) => textOf(call, name) === undefined)
  if (call.values.yes && lacking.length > 0)
    throw new UsageError(
      `--yes signs without asking, so name the amount and the recipient: pass ${lacking.map((name) => `--${name}`).join(' and ')}.`,
    )
}

/** Shows what will be signed, asks, signs, and tells each step. Returns the exit code. */
async function signAndShow(
  call: Call,
  client: FarthingClient,
  refund: Refund,
  wallet: Signer,
): Promise<number | undefined> {
  const { terminal, values } = call
  const recipient = textOf(call, 'to') ?? refund.recipient
  if (recipient === null)
    throw new UsageError('It has no recipient yet: farthing refund request-address asks the buyer for one.')
  const asset = knownAssetOf(refund)
  const wanted = textOf(call, 'amount')
  const amount = wanted === undefined ? refund.amount : unitsOf(wanted, refund)
  if (amount !== refund.amount)
    throw new RefundMismatch(
      'refund.amount',
      `${formatUnits(amount, asset.decimals)} ${asset.symbol}`,
      `${formatUnits(refund.amount, asset.decimals)} ${asset.symbol}`,
    )
  terminal.say(
    [
      `${paint('bold', `${formatUnits(amount, asset.decimals)} ${asset.symbol}`)} on ${asset.networkName}`,
      '',
      ...terminal.facts([
        ['to', recipient],
        ['from', wallet.address],
        ['for', refund.reason ?? refund.orderId ?? refund.paymentId],
      ]),
      '',
    ].join('\n'),
  )
  if (!values.yes && !(await ask('Sign and refund?'))) {
    terminal.say(`Nothing was signed. The refund waits: farthing refund sign ${refund.id}`)
    return 1
  }
  const rest = terminal.busy('Refunding …')
  const { network } = refund
  const done = await client.refunds
    .sign(
      refund.id,
      wallet,
      { amount, recipient, network },
      {
        waitMs,
        kept: keptRefundsIn(`${call.settings.stateFolder}/farthing/refunds`),
        onProgress({ status, transaction }) {
          if (status === 'SIGNED') terminal.say(good('Signed'))
          if (status === 'SENT') terminal.say(good(`Sent ${paint('dim', transaction ?? '')}`))
        },
      },
    )
    .finally(rest)
  return await showRefund(terminal, client, done)
}

async function showRefund(
  terminal: Terminal,
  client: FarthingClient,
  refund: Refund,
): Promise<number | undefined> {
  const networks = await client.networks.list()
  terminal.show(refund, () => [
    headline(refund),
    '',
    ...terminal.facts([
      ['refund', refund.id],
      ['amount', amountOf(refund, networks)],
      ['to', refund.recipient ?? 'not known yet'],
      ...(refund.transaction === null ? [] : [['transaction', refund.transaction] as const]),
    ]),
  ])
  return exitCodes[refund.status]
}

function headline({ id, status, way, recipient, failure }: Refund): string {
  const waiting = paint('yellow', '…')
  switch (status) {
    case 'COMPLETED':
      return good('Refunded')
    case 'DECLARED':
      return good('Recorded as your statement. Nothing on the chain proves it.')
    case 'FAILED':
      return bad(
        wrap(`The refund failed: ${failure ?? 'its signature can no longer be used'}. No money moved.`),
      )
    case 'CANCELED':
      return bad('The refund was canceled.')
    case 'REQUESTED':
      if (way === 'self-sent') return `${waiting} Send it, then run farthing refund sent ${id} <transaction>.`
      if (recipient === null)
        return `${waiting} The sender may be an exchange, so it needs an address: farthing refund request-address ${id} makes a link for the buyer.`
      return `${waiting} It waits for the wallet’s signature: farthing refund sign ${id}, or in the console.`
    default:
      return `${waiting} On its way. Run farthing refunds to see the outcome.`
  }
}

function statusOf({ status, isCanceling }: Refund): string {
  return isCanceling && status === 'REQUESTED' ? 'CANCELING' : status
}

type Amount = { readonly network: string; readonly asset: string }

function networkOf({ network }: Amount, networks: readonly Network[]): Network | undefined {
  return networks.find((each) => each.network === network)
}

function assetOf(of: Amount, networks: readonly Network[]) {
  return networkOf(of, networks)?.assets.find(
    ({ address }) => address.toLowerCase() === of.asset.toLowerCase(),
  )
}

function amountOf(refund: Refund, networks: readonly Network[]): string {
  const known = assetOf(refund, networks)
  return known
    ? `${formatUnits(refund.amount, known.decimals)} ${known.symbol}`
    : `${refund.amount} units of ${refund.asset}`
}

/** Looks the token up in this package's own table, because a server's word about it proves nothing. */
function knownAssetOf({ network, asset }: Amount): Asset {
  const known = knownAssets.find(
    (each) => each.network === network && each.address.toLowerCase() === asset.toLowerCase(),
  )
  if (!known)
    throw new UsageError(`This version does not know the token ${asset} on ${network}. Sign in the console.`)
  return known
}

function unitsOf(text: string, payment: Amount): string {
  const known = knownAssetOf(payment)
  const units = parseUnits(text, known.decimals)
  if (units === null || units === 0n)
    throw new UsageError(
      `--amount must be in ${known.symbol}, such as 2.50, with at most ${known.decimals} decimals.`,
    )
  return String(units)
}
