import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Checkout } from '@farthing/sdk'
import { ConfigError } from '../config.ts'
import type { Context } from '../context.ts'
import { operatorActor } from '../events/actor.ts'
import type { StoreId } from '../ids.ts'
import { inviteAsOperator } from '../members/invite.ts'
import { listStoreMembers } from '../members/rows.ts'
import { createKey } from '../stores/api-keys.ts'
import { createStore } from '../stores/create.ts'
import { listStores } from '../stores/rows.ts'
import { registerWallet } from '../stores/wallets.ts'
import { testPayer } from './chain.ts'

/** The second account of the well-known test mnemonic, whose key is public. */
const storeWallet = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const order = { orderId: 'demo', priceAmount: '4.99', priceCurrency: 'EUR' }

const actor = operatorActor('dev')

export type Demo = { readonly baseUrl: string; readonly key: string; readonly checkoutUrl: string }

export async function makeDemoStore(ctx: Context): Promise<StoreId> {
  const now = ctx.now()
  const stores = await listStores(ctx.db)
  if (stores.some(({ mode }) => mode === 'live'))
    throw new ConfigError(
      'DATABASE_URL points to a database with live stores. dev needs a database of its own.',
    )
  const store = stores[0] ?? (await createStore(ctx, { name: 'Demo store', mode: 'test' }, now))
  const wallet = { walletAddress: storeWallet, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(ctx, store.id, actor, 'EVM', wallet, now)
  return store.id
}

/** Where to enrol as the demo store's owner; once there is one, where to sign in. */
export async function inviteToDemo(ctx: Context, store: StoreId): Promise<{ readonly consoleUrl: string }> {
  const members = await listStoreMembers(ctx.db, store)
  if (members.some(({ role }) => role === 'owner')) return { consoleUrl: ctx.config.consoleUrl }
  const owner = { name: 'Demo owner', email: null, role: 'owner' } as const
  const { link } = await inviteAsOperator(ctx, store, actor, owner, ctx.now())
  return { consoleUrl: link }
}

/**
 * Creates a checkout to pay, and a file with everything a second terminal needs. Reuses the key from the last start.
 */
export async function makeDemoCheckout(ctx: Context, store: StoreId, folder: string): Promise<Demo> {
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
export CHECKOUT=${checkoutUrl}
export CHAIN_URL=${ctx.config.nodes.LOCAL?.[0]?.url}
`,
  )
  return { baseUrl, key, checkoutUrl }
}
