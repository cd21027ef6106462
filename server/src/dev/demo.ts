import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Checkout, createClient, type EventType } from '@farthing/sdk'
import { pay } from '@farthing/sdk/pay'
import type { FastifyInstance } from 'fastify'
import { privateKeyToAccount } from 'viem/accounts'
import { numberEvents } from '../checkouts/number-events.ts'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import { operatorActor } from '../events/append.ts'
import { createEndpoint } from '../events/webhooks/endpoints.ts'
import type { StoreId } from '../ids.ts'
import type { EvmNetwork } from '../networks.ts'
import { createKey } from '../stores/api-keys.ts'
import { createStore } from '../stores/create.ts'
import { challengeWallet, proveWallet } from '../stores/prove.ts'
import { listStores } from '../stores/rows.ts'
import { registerWallet } from '../stores/wallets.ts'
import { demoBuyer, testPayer } from './chain.ts'
import { writeHistory } from './history.ts'

/** The second account of the well-known test mnemonic, whose key is public. */
const storeKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const storeWallet = privateKeyToAccount(storeKey)
const order = { orderId: 'demo', priceAmount: '4.99', priceCurrency: 'EUR' }

/** Before the first order of its past, because a payment from before the wallet was in use would not be the store's. */
const openedDaysAgo = 70

const actor = operatorActor('dev')

/** Where npm links the commands of this workspace. */
const programs = fileURLToPath(new URL('../../../node_modules/.bin', import.meta.url))

export type Demo = { readonly baseUrl: string; readonly key: string; readonly checkoutUrl: string }

export async function makeDemoStore(
  ctx: Context,
): Promise<{ readonly id: StoreId; readonly isNew: boolean }> {
  const now = ctx.now()
  const stores = await listStores(ctx.db)
  if (stores.some(({ mode }) => mode === 'live'))
    throw new ConfigError(
      'DATABASE_URL points to a database with live stores. dev needs a database of its own.',
    )
  const opened = stores[0] ? now : new Date(now.getTime() - openedDaysAgo * 86_400_000)
  const store = stores[0] ?? (await createStore(ctx, { name: 'Demo store', mode: 'test' }, opened))
  const wallet = {
    family: 'EVM',
    walletAddress: storeWallet.address,
    custodialType: 'NON_CUSTODIAL',
  } as const
  const { id, provenAt } = await registerWallet(ctx, store.id, actor, wallet, opened)
  // Without this proof the store could not refund.
  if (provenAt === null) {
    const { message } = await challengeWallet(ctx, store, id, opened)
    const signature = await storeWallet.signMessage({ message })
    await proveWallet(ctx, { store, actor, now: opened }, id, { signature })
  }
  return { id: store.id, isNew: stores.length === 0 }
}

/** Writes the past of a new demo store. Later starts find it. */
export async function makeDemoPast(ctx: Context, store: StoreId, network: EvmNetwork): Promise<void> {
  const [asset] = network.assets
  assert(asset)
  const shop = {
    storeId: store,
    network: network.caip2,
    asset: asset.address,
    payTo: storeWallet.address,
    actor,
  }
  await writeHistory(ctx, shop)
  // The receivers are added only now, so they get no events of the past.
  while ((await numberEvents(ctx)) > 0);
  await addReceivers(ctx, store)
}

/** Makes some orders of today as any store would, and pays them as any buyer would. */
export async function liveToday({ baseUrl, key }: Demo, signal: AbortSignal): Promise<void> {
  const farthing = createClient({ baseUrl, apiKey: key })
  const orders = ['12.40', '34.00', '19.50', '64.90']
  const made = []
  for (const [i, priceAmount] of orders.entries()) {
    const orderId = `${2001 + i}`
    made.push(await farthing.checkouts.create({ orderId, priceAmount, priceCurrency: 'USD' }))
  }
  const [first, second, third] = made
  assert(first && second && third)
  const buyer = privateKeyToAccount(demoBuyer.key)
  for (const { checkoutUrl } of [first, second]) await pay(checkoutUrl, buyer, { max: '100', signal })
  await farthing.checkouts.cancel(third.id)
}

/**
 * Creates a checkout to pay, and a file with everything a second terminal needs. Reuses the key from the last start.
 */
export async function makeDemoCheckout(
  ctx: Context,
  store: StoreId,
  folder: string,
  settingsFolder: string,
): Promise<Demo> {
  const { baseUrl } = ctx.config
  const file = join(folder, 'env')
  const create = (key: string) =>
    fetch(`${baseUrl}/api/v1/checkouts`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(order),
    })
  const [, kept = ''] = /FARTHING_API_KEY=(\S+)/.exec(await readFile(file, 'utf8').catch(() => '')) ?? []
  let key = kept
  let answer = await create(key)
  if (answer.status === 401) {
    key = (await createKey(ctx, store, { actor, limit: null }, { label: 'dev' }, ctx.now())).text
    answer = await create(key)
  }
  assert.equal(answer.status, 201, 'the demo checkout was refused')
  const { checkoutUrl } = (await answer.json()) as Checkout
  await writeFile(
    file,
    `# Written by dev. In a second terminal: . .dev/env
export FARTHING_URL=${baseUrl}
export FARTHING_API_KEY=${key}
# The test payer, an account whose key is public. Never send it anything of value.
export FARTHING_PRIVATE_KEY=${testPayer.key}
# The store's wallet, which signs refunds. Its key is just as public.
export STORE_PRIVATE_KEY=${storeKey}
export CHECKOUT=${checkoutUrl}
export CHAIN_URL=${ctx.config.nodes.LOCAL?.[0]?.url}
# The commands farthing and farthing-admin, and where the latter finds this deployment.
export PATH="${programs}:$PATH"
export SETTINGS_FOLDER=${settingsFolder}
`,
  )
  return { baseUrl, key, checkoutUrl }
}

/** Two receivers of the demo store's webhooks: one takes everything, one is out of order. */
const paths = { orders: '/dev/webhooks/orders', mailing: '/dev/webhooks/mailing' } as const

export function offerReceivers(app: FastifyInstance): void {
  app.post(paths.orders, (_request, reply) => reply.code(204).send())
  app.post(paths.mailing, (_request, reply) =>
    reply.code(503).type('text/plain').send('The newsletter service is being moved.\n'),
  )
}

export async function addReceivers(ctx: Context, storeId: StoreId): Promise<void> {
  const actor = operatorActor('dev')
  const add = (path: string, types: readonly EventType[]) =>
    createEndpoint(ctx, storeId, actor, { url: `${ctx.config.baseUrl}${path}`, types: [...types] }, ctx.now())
  await add(paths.orders, [])
  await add(paths.mailing, ['checkout.completed'])
}
