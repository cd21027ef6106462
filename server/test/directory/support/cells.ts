import assert from 'node:assert/strict'
import type { Wallet, WalletChallenge } from '@farthing/sdk'
import { privateKeyToAccount } from 'viem/accounts'
import { openUses } from '../../../src/checkouts/uses.ts'
import type { Context } from '../../../src/context.ts'
import { type Database, openDatabase } from '../../../src/database/db.ts'
import { migrate } from '../../../src/database/migrate.ts'
import { adopt } from '../../../src/directory/adopt.ts'
import { openTestApp, type TestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import type { Payer } from '../../support/chain/evm-payment.ts'
import { freshDatabase } from '../../support/database.ts'
import type { Answer, StoreClient } from '../../support/store.ts'

const folder = new URL('../../../directory/', import.meta.url)

/** An empty directory for this test file. */
export async function openDirectory(): Promise<{ url: string; db: Database }> {
  const fresh = await freshDatabase('template0')
  await migrate(fresh.db, { folder })
  return fresh
}

/** A cell that has adopted the directory. */
export async function openCell(
  directoryUrl: string,
  tag: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<TestApp> {
  const cell = await openTestApp({ CELL: tag, DIRECTORY_URL: directoryUrl, ...settings })
  assert.deepEqual(await adopt(cell.ctx, openUses(cell.ctx.db)), { wallets: 0, settlers: 0 })
  return cell
}

/** Ends the directory's connections and lets nobody in until the returned function is called. */
export async function killDirectory({ config, db }: Context): Promise<() => Promise<void>> {
  const name = new URL(config.directoryUrl).pathname.slice(1)
  await db.query(`alter database ${name} allow_connections false`)
  await db.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  return async () => void (await db.query(`alter database ${name} allow_connections true`))
}

/** The same cell at a later time of the directory. */
export function later(ctx: Context, hours: number): Context {
  const directory = openDatabase({
    url: ctx.config.directoryUrl,
    connections: 4,
    name: 'test-directory',
    clockOffset: `${hours}h`,
  })
  atEnd(() => directory.close())
  return { ...ctx, directory }
}

export async function register(
  shop: StoreClient,
  walletAddress: string,
  custodialType = 'NON_CUSTODIAL',
): Promise<Answer> {
  return await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/evm`, { walletAddress, custodialType })
}

/** The wallet's signature of a new challenge. */
export async function sign(shop: StoreClient, { id }: Pick<Wallet, 'id'>, holder: Payer): Promise<string> {
  const answer = await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${id}/challenge`)
  assert.equal(answer.statusCode, 201, answer.body)
  const { message } = answer.json<WalletChallenge>()
  return await privateKeyToAccount(holder.key).signMessage({ message })
}

export async function prove(shop: StoreClient, wallet: Pick<Wallet, 'id'>, holder: Payer): Promise<Answer> {
  const signature = await sign(shop, wallet, holder)
  return await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${wallet.id}/prove`, { signature })
}
