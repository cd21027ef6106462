import { setTimeout as wait } from 'node:timers/promises'
import { type Delivery, type FarthingClient, isReadableOnTheWay, type Wallet } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Network } from '../../networks.ts'
import type { AnySigner, Rail } from '../../payments/rail.ts'
import { listStores } from '../../stores/rows.ts'
import type { Store } from '../../stores/store.ts'
import { examine } from '../doctor.ts'
import type { Options } from '../usage.ts'
import type { Purse } from './purse.ts'
import { type Report, StepFailed } from './report.ts'

/** What is looked at before any money moves. */

/** The first attempt of a delivery is made at once, and a receiver may take this long to answer. */
const deliverySecondsMax = 30
const lookMs = 500
/** Stores to name; `store list` has them all. */
const namedMax = 5

/** Everything that `doctor` finds, for this network alone. */
export async function checkDeployment(
  ctx: Context,
  { network, deploy }: Rail,
  report: Report,
  readSigners: () => Promise<readonly AnySigner[]>,
): Promise<void> {
  const findings = await examine({ ...ctx, config: { ...ctx.config, networks: [network.id] } }, readSigners)
  for (const { what, says, fix } of findings)
    await (fix === null ? report.ok(what, says) : report.wrong(what, says, fix))
  const wrong = findings.filter(({ fix }) => fix !== null).length
  if (wrong > 0)
    throw new StepFailed(
      `${wrong} of ${findings.length} checks found something wrong`,
      'Correct what is marked WRONG, then run the same line again.',
    )
  for (const { symbol, address, decimals, ...token } of network.assets) {
    const domain = 'domain' in token ? `, whose domain is ${token.domain.name} / ${token.domain.version}` : ''
    await report.ok(`${network.id} token`, `${symbol} at ${address}${domain}, has ${decimals} decimals`)
  }
  // Without a key it only looks.
  const contract = await deploy?.([])
  if (contract?.isDone) await report.ok(`${network.id} batcher`, contract.says)
  else if (contract)
    await report.note(
      `${network.id} batcher`,
      'is not there, so payments that share a transaction go through Multicall3. A live network needs the batcher.',
      `To put it there: farthing-admin settler deploy ${network.id}`,
    )
}

/** The store that is paid: the one that is named, or the only one there is. */
export async function chooseStore(ctx: Context, { mode, family }: Network, options: Options): Promise<Store> {
  const fitting = (await listStores(ctx.db)).filter((store) => store.mode === mode)
  const named = fitting.filter(({ id }) => options.store === undefined || options.store === id)
  const [store, another] = named
  const test = mode === 'test' ? ' --test' : ''
  if (!store && options.store !== undefined)
    throw new StepFailed(
      `${options.store} is not a ${mode} store of this deployment`,
      'Name another with --store. farthing-admin store list shows them.',
    )
  if (!store)
    throw new StepFailed(
      `there is no ${mode} store`,
      `Create one: farthing-admin store create --name 'My shop'${test} --${family.toLowerCase()}-wallet ADDRESS`,
    )
  if (another)
    throw new StepFailed(
      `there are ${named.length} ${mode} stores`,
      `Say which one is paid, with --store: ${named
        .slice(0, namedMax)
        .map(({ id }) => id)
        .join(' or ')}.`,
    )
  if (store.standing === 'approved') return store
  const verb = store.standing === 'suspended' ? 'resume' : 'approve'
  throw new StepFailed(
    `${store.name} may not create checkouts: it is ${store.standing}`,
    `To let it: farthing-admin store ${verb} ${store.id}`,
  )
}

/** Whether the API can be called as stores call it: by its public address, through whatever is in front of it. */
export async function checkAddress(
  baseUrl: string,
  client: FarthingClient,
  { id, caip2 }: Network,
): Promise<string> {
  const offered = await client.networks.list()
  if (offered.some(({ network }) => network === caip2)) return `${baseUrl} answers and offers ${id}`
  throw new StepFailed(
    `${baseUrl} offers ${offered.map(({ chainId }) => chainId).join(', ') || 'no network'}, but not ${id}`,
    `Put ${id} into NETWORKS of serve and work, and restart them.`,
  )
}

/** A key must not be sent where others can read it. */
export function requireEncrypted(baseUrl: string): void {
  if (isReadableOnTheWay(baseUrl))
    throw new StepFailed(
      `BASE_URL is ${baseUrl}, so the store’s key would cross the network unencrypted`,
      'Put a proxy with a certificate in front of serve, and make BASE_URL an https address.',
    )
}

/** The wallet that the store is paid to. If its key is here, it is proven too: only then can it refund. */
export async function checkWallet(
  client: FarthingClient,
  { family, name }: Network,
  purse: Purse | null,
): Promise<{ readonly wallet: Wallet; readonly says: string }> {
  let current: Wallet | undefined
  for await (const wallet of client.wallets.list())
    if (wallet.current && wallet.family === family) current = wallet
  if (!current)
    throw new StepFailed(
      `the store has no wallet for ${name}`,
      'Register one in the console, or with the store’s key: farthing wallet add ADDRESS',
    )
  const { id, walletAddress, payable, unpayableReason, provenAt } = current
  if (!payable)
    throw new StepFailed(
      `${walletAddress} cannot be paid: ${unpayableReason}`,
      'Remove the reason, or register another wallet: farthing wallet add ADDRESS',
    )
  const held = purse?.signer.address
  if (held !== undefined && held.toLowerCase() !== walletAddress.toLowerCase())
    throw new StepFailed(
      `--wallet-key holds the key of ${held}, but the store is paid to ${walletAddress}`,
      `Name a file with the key of ${walletAddress}, or leave out --wallet-key.`,
    )
  if (provenAt !== null || !purse)
    return {
      wallet: current,
      says: `${walletAddress}${provenAt === null ? ', not proven, so it could refund nothing' : ', proven'}`,
    }
  const { message } = await client.wallets.challenge(id)
  // A transaction must not pass for a text. Its first byte is its number of signers, which is always below the first
  // visible character.
  if (!/^[\x21-\x7e]/.test(message))
    throw new StepFailed(
      'the server asks the wallet to sign something that is no text',
      'Find out who changed this deployment before you go on.',
    )
  const proven = await client.wallets.prove(id, { signature: await purse.signText(message) })
  return { wallet: proven, says: `${walletAddress}, proven just now with its key` }
}

/** Sends a test event to each of the store's endpoints. */
export async function checkWebhooks(
  client: FarthingClient,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const sent: Sent[] = []
  for await (const { id, url, status } of client.webhookEndpoints.list())
    if (status === 'enabled')
      sent.push({ endpointId: id, url, eventId: (await client.webhookEndpoints.test(id)).eventId })
  if (sent.length > 0) await checkDeliveries(client, report, 'a test event', sent, signal)
  else
    await report.note(
      'webhooks',
      'the store has no endpoint',
      'Register one in the console to try it out too.',
    )
}

/** An event on its way to an endpoint. */
export type Sent = { readonly endpointId: string; readonly url: string; readonly eventId: string }

/** Reports which endpoints took an event. One is enough: the others are their receivers' matter, not this deployment's. */
export async function checkDeliveries(
  client: FarthingClient,
  report: Report,
  event: string,
  sent: readonly Sent[],
  signal: AbortSignal,
): Promise<void> {
  const outcomes = await Promise.all(
    sent.map(async ({ endpointId, url, eventId }) => {
      const delivery = await awaitDelivery(client, endpointId, eventId, signal)
      const [attempt] = delivery?.attempts ?? []
      return {
        isTaken: delivery?.state === 'delivered',
        says: attempt
          ? `${url} ${attempt.error ?? `answered ${attempt.status} after ${attempt.durationMs} ms`}`
          : `${url} was not called`,
      }
    }),
  )
  const tell = (isTaken: boolean) =>
    outcomes
      .filter((each) => each.isTaken === isTaken)
      .map(({ says }) => says)
      .join('\n')
  const [taken, missed] = [tell(true), tell(false)]
  const fix =
    'Its receiver must be reachable from work and answer with 2xx. Repair it, or disable the endpoint in the console.'
  if (taken === '')
    throw new StepFailed(`no endpoint took ${event}\n${missed}`, `${fix} Then run the same line again.`)
  await report.ok('webhooks', `${event}: ${taken}`)
  if (missed !== '') await report.note('webhooks', `${event}: ${missed}`, fix)
}

/** The delivery of an event, once it was tried. */
async function awaitDelivery(
  client: FarthingClient,
  endpointId: string,
  eventId: string,
  signal: AbortSignal,
): Promise<Delivery | undefined> {
  for (let looks = 0; ; looks++) {
    const { data } = await client.webhookEndpoints.deliveries(endpointId, { eventId }).page()
    const [delivery] = data
    const isTried = delivery?.attempts.some(({ status, error }) => status !== null || error !== null)
    if (delivery?.state === 'delivered' || isTried || looks * lookMs > deliverySecondsMax * 1_000)
      return delivery
    await wait(lookMs, undefined, { signal })
  }
}
