import { createInterface } from 'node:readline/promises'
import { type Actor, createClient, FarthingError, RefundMismatch, type Scope } from '@farthing/sdk'
import type { Offer } from '@farthing/sdk/pay'
import { listNodeRecords } from '../../chains/record-nodes.ts'
import type { Context } from '../../context.ts'
import type { Network } from '../../networks.ts'
import { noteLook } from '../../payments/looks.ts'
import type { AnySigner, Rail } from '../../payments/rail.ts'
import { listConnected, openRails } from '../../payments/rails.ts'
import { describeRunway, readRunways } from '../../payments/settlers/runway.ts'
import { Problem } from '../../problems.ts'
import { createKey, listKeys, revokeKey } from '../../stores/api-keys.ts'
import type { Store } from '../../stores/store.ts'
import { type Options, UsageError } from '../usage.ts'
import {
  checkAddress,
  checkDeployment,
  checkWallet,
  checkWebhooks,
  chooseStore,
  requireEncrypted,
} from './checks.ts'
import {
  awaitFinal,
  checkEvent,
  describeAmount,
  describeTransaction,
  findCheckout,
  payCheckout,
  type Rehearsal,
  readPayment,
  refundPayment,
} from './payment.ts'
import { openPurse, type Purse } from './purse.ts'
import { openReport, type Report, StepFailed } from './report.ts'

/** What the rehearsal's own key may do for the store, for as long as it runs. */
const scopes: Scope[] = [
  'checkouts:write',
  'payments:read',
  'refunds:write',
  'wallets:write',
  'webhooks:write',
]
const keyLabel = 'rehearsal'
/** No rehearsal takes longer: an older key of one was left by a run that was killed. */
const keyHoursMax = 24

/** The processes write down every ten seconds how often they called. A count of less time than this says little. */
const countedMinutesMin = 2

const stopSignals = ['SIGINT', 'SIGTERM'] as const

type Terminal = {
  readonly say: (text: string) => void
  readonly readSigners: () => Promise<readonly AnySigner[]>
}

/**
 * `rehearse`: the first payment of a deployment, step by step, with a check after each. Everything that is found out
 * without money comes first. The deployment itself remembers how far a rehearsal got: its checkout, payment and refund
 * are ordinary ones, found again by their order, so a run that follows a killed one goes on where that stopped. Returns
 * whether all went well.
 */
export async function rehearse(
  ctx: Context,
  actor: Actor,
  [id]: readonly string[],
  options: Options,
  { say, readSigners }: Terminal,
): Promise<boolean> {
  const rail = findNetwork(ctx, id, options)
  const file = typeof options.report === 'string' ? options.report : null
  const report = openReport(rail.network, file, { say, now: ctx.now })
  await report.write()
  const ending = new AbortController()
  const end = () => ending.abort()
  for (const signal of stopSignals) process.once(signal, end)
  const run: Run = { ctx, actor, rail, options, report, ending, step: 'deployment', mayHavePaid: false }
  // A settler that was filled just now is seen filled when the next run asks.
  noteLook(ctx, [rail.network.caip2])
  try {
    await checkDeployment(ctx, rail, report, readSigners)
    await withStore(run)
    return true
  } catch (error) {
    const { says, fix } = explain(error, ctx, ending.signal)
    await report.wrong(run.step, says, fix)
    await report.end(
      run.mayHavePaid
        ? 'Stopped after a payment was signed. The same line goes on from here and pays nothing twice.'
        : 'Stopped. This run moved no money.',
    )
    return false
  } finally {
    for (const signal of stopSignals) process.off(signal, end)
  }
}

type Run = {
  readonly ctx: Context
  readonly actor: Actor
  readonly rail: Rail
  readonly options: Options
  readonly report: Report
  readonly ending: AbortController
  /** What is being done. */
  step: string
  /** Whether a signature that can move money has left this process. */
  mayHavePaid: boolean
}

function findNetwork(ctx: Context, id: string | undefined, { yes, ...options }: Options): Rail {
  if (typeof options['payer-key'] !== 'string')
    throw new UsageError('rehearse requires --payer-key FILE: the key of a wallet that pays one cent.')
  const enabled = listConnected(openRails(ctx)).filter(({ network }) =>
    ctx.config.networks.includes(network.id),
  )
  const rail = enabled.find(({ network }) => network.id === id)
  if (!rail)
    throw new UsageError(
      `${id} is not one of the networks that this deployment has turned on: ${enabled.map(({ network }) => network.id).join(', ') || 'none'}. Put it into NETWORKS, and its nodes into ${id}_RPC_URLS.`,
    )
  if (rail.network.mode === 'live' && yes !== true && !process.stdin.isTTY)
    throw new UsageError(
      `Nothing was paid: ${rail.network.name} carries real money, and this is not a terminal, so the question cannot be asked. To go ahead, add --yes.`,
    )
  return rail
}

/** Opens the wallets, and acts for the store by a key that ends with this run. */
async function withStore(run: Run): Promise<void> {
  const { ctx, actor, rail, options, report } = run
  const { network } = rail
  run.step = 'payer'
  const payer = await openPurse(network, String(options['payer-key']))
  await report.ok(run.step, `${payer.signer.address}, whose key is in ${options['payer-key']}`)
  run.step = 'wallet'
  const file = options['wallet-key']
  const wallet = typeof file === 'string' ? await openPurse(network, file) : null
  run.step = 'store'
  const store = await chooseStore(ctx, network, options)
  await report.ok(run.step, `${store.name} (${store.id}), a ${store.mode} store`)
  run.step = 'address'
  requireEncrypted(ctx.config.baseUrl)
  await withKey(ctx, actor, store, async (apiKey) => {
    await moveMoney(run, apiKey, payer, wallet)
  })
}

async function withKey(
  ctx: Context,
  actor: Actor,
  store: Store,
  use: (apiKey: string) => Promise<void>,
): Promise<void> {
  const maker = { actor, limit: null }
  const oldest = ctx.now().getTime() - keyHoursMax * 3_600_000
  for (const { id, label, createdAt, revokedAt } of await listKeys(ctx.db, store.id))
    if (label === keyLabel && revokedAt === null && createdAt.getTime() < oldest)
      await revokeKey(ctx, store.id, maker, id, ctx.now())
  const { key, text } = await createKey(ctx, store.id, maker, { label: keyLabel, scopes }, ctx.now())
  try {
    await use(text)
  } finally {
    await revokeKey(ctx, store.id, maker, key.id, ctx.now())
  }
}

async function moveMoney(run: Run, apiKey: string, payer: Purse, purse: Purse | null): Promise<void> {
  const { ctx, rail, options, report, ending } = run
  const { network } = rail
  const { baseUrl } = ctx.config
  const { signal } = ending
  const client = createClient({ baseUrl, apiKey })
  const rehearsal: Rehearsal = { network, client, report, now: ctx.now, signal }
  const begun = { at: ctx.now(), calls: await countCalls(ctx, network) }
  await report.ok(run.step, await checkAddress(baseUrl, client, network))
  run.step = 'wallet'
  const { wallet, says } = await checkWallet(client, network, purse)
  await report.ok(run.step, says)
  run.step = 'webhooks'
  await checkWebhooks(client, report, signal)
  run.step = 'checkout'
  const checkout = await findCheckout(rehearsal, options.after)
  await report.ok(run.step, `${checkout.id} asks for ${checkout.priceAmount} ${checkout.priceCurrency}`)

  run.step = 'payment'
  run.mayHavePaid = (await payer.kept.get(checkout.checkoutUrl)) !== undefined
  const { result, signedAt } = await payCheckout(rehearsal, checkout, payer, async (offer) => {
    if (offer.payTo.toLowerCase() !== wallet.walletAddress.toLowerCase())
      throw new StepFailed(
        `the checkout is paid to ${offer.payTo}, but the store’s wallet is ${wallet.walletAddress}`,
        `If the wallet has changed since, cancel the checkout, with the store’s key: farthing checkout cancel ${checkout.id}. Then run the same line again.`,
      )
    run.mayHavePaid =
      network.mode === 'test' || options.yes === true || (await isConfirmed(network, offer, ending))
    return run.mayHavePaid
  })
  run.mayHavePaid = true
  const took =
    signedAt === null
      ? ', by an earlier run: this one paid nothing'
      : `, ${report.time('the payment completed', ctx.now().getTime() - signedAt.getTime())} after the signature`
  const payment = await readPayment(rehearsal, checkout, result.transaction)
  const transaction = describeTransaction(network, payment.transaction)
  await report.ok(
    run.step,
    `${describeAmount(network, payment)} from ${payment.payer} to ${payment.payTo} in ${transaction}${took}`,
  )
  run.step = 'event'
  await checkEvent(rehearsal, checkout, 'checkout.completed')
  run.step = 'finality'
  await report.ok(run.step, await awaitFinal(rehearsal, payment.id))
  run.step = 'event'
  await checkEvent(rehearsal, checkout, 'payment.finalized')
  run.step = 'refund'
  if (purse)
    await report.ok('refund finality', await refundPayment(rehearsal, payment, { payer, wallet: purse }))
  else
    await report.note(
      run.step,
      'there is no --wallet-key, so nothing signs it',
      `Run this again with --wallet-key FILE, or refund it in the console, or with the store’s key: farthing refund ${payment.id} --key-file FILE`,
    )
  await tellCosts(run, begun)
  const paid = signedAt === null ? ' This run paid nothing: an earlier one had.' : ''
  await report.end(`Passed.${paid} To pay another cent: --after ${checkout.id}`)
}

async function tellCosts(
  { ctx, rail, report }: Run,
  begun: { readonly at: Date; readonly calls: number },
): Promise<void> {
  for (const runway of await readRunways(ctx, rail))
    await report.ok('costs', `${runway.address}: ${describeRunway(rail.network, runway)}`)
  const minutes = Math.floor((ctx.now().getTime() - begun.at.getTime()) / 60_000)
  const calls = (await countCalls(ctx, rail.network)) - begun.calls
  if (minutes >= countedMinutesMin && calls > 0)
    await report.ok(
      'calls',
      `the nodes answered ${calls} calls of serve and work in ${minutes} minutes, most of them to follow the chain`,
    )
}

/** Of all processes, in the last 24 hours. */
async function countCalls({ db }: Context, { id }: Network): Promise<number> {
  const records = await listNodeRecords(db)
  return records.filter(({ network }) => network === id).reduce((sum, { answered }) => sum + answered, 0)
}

async function isConfirmed(network: Network, offer: Offer, ending: AbortController): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  terminal.once('SIGINT', () => ending.abort())
  try {
    const answer = await terminal.question(
      `\nThis pays real money: ${offer.amount} ${offer.asset.symbol} on ${network.name}, from ${offer.payer} to ${offer.payTo}.\nType yes to pay it: `,
      { signal: ending.signal },
    )
    return answer.trim() === 'yes'
  } finally {
    terminal.close()
  }
}

/** What went wrong and what to do about it. What is none of these is a bug of ours. */
function explain(
  error: unknown,
  { config }: Context,
  signal: AbortSignal,
): { readonly says: string; readonly fix: string } {
  if (signal.aborted)
    return {
      says: 'you stopped it',
      fix: 'Run the same line again: it goes on from here and pays nothing twice.',
    }
  if (error instanceof StepFailed) return { says: error.message, fix: error.fix }
  if (error instanceof RefundMismatch)
    return {
      says: error.detail,
      fix: 'If nobody else refunds this payment, somebody has changed this deployment: find out who before you go on.',
    }
  if (error instanceof FarthingError)
    return {
      says: error.message,
      fix:
        error.problem?.advice ??
        `Check that serve is running, and that ${config.baseUrl} can be reached from this machine: its name, its certificate, its proxy. Then run the same line again.`,
    }
  if (error instanceof Problem)
    return { says: error.message, fix: 'Run farthing-admin doctor. Then run the same line again.' }
  throw error
}
