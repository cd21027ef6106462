import assert from 'node:assert/strict'
import type { Wallet, WalletChallenge } from '@farthing/sdk'
import { privateKeyToAccount } from 'viem/accounts'
import { openUses } from '../../../src/checkouts/uses.ts'
import type { Context } from '../../../src/context.ts'
import { type Database, openDatabase } from '../../../src/database/db.ts'
import { migrate } from '../../../src/database/migrate.ts'
import { adopt } from '../../../src/directory/adopt.ts'
import type { Ownership } from '../../../src/directory/directory.ts'
import { release } from '../../../src/directory/own.ts'
import { reportToDirectory } from '../../../src/directory/report.ts'
import { listOwners } from '../../../src/directory/rows.ts'
import { Problem } from '../../../src/problems.ts'
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
  assert.deepEqual(await adopt(cell.ctx, openUses(cell.ctx.db)), { wallets: 0, settlers: 0, elsewhere: [] })
  return cell
}

/** Ends the directory's connections and lets nobody in until the returned function is called. */
export async function killDirectory({ config, db }: Context): Promise<() => Promise<void>> {
  const name = new URL(config.directoryUrl).pathname.slice(1)
  await db.query(`alter database ${name} allow_connections false`)
  await db.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  return async () => void (await db.query(`alter database ${name} allow_connections true`))
}

/** What `work` does once a minute. */
export async function report({ ctx }: Pick<TestApp, 'ctx'>, uses = openUses(ctx.db)): Promise<void> {
  await reportToDirectory(ctx, uses, async () => ({ stores: 2, paymentsPerHour: 3 }))
}

export async function adoptAgain({ ctx }: Pick<TestApp, 'ctx'>): ReturnType<typeof adopt> {
  return await adopt(ctx, openUses(ctx.db))
}

/** What the command `directory release` does with what the cell owns. Returns what is used. */
export async function releaseIn(
  { ctx }: Pick<TestApp, 'ctx'>,
  some: readonly Ownership[],
  uses = openUses(ctx.db),
): Promise<readonly Ownership[]> {
  const directory = ctx.directory ?? assert.fail('it has a directory')
  const used = await release(ctx, uses, await listOwners(directory, some))
  return used.map(({ kind, scope, address }) => ({ kind, scope, address }))
}

/** The cell's own database a day later: no owner can undo a change of wallet any more. */
export function aDayLater<App extends Pick<TestApp, 'ctx' | 'databaseUrl'>>(cell: App): App {
  const db = openDatabase({ url: cell.databaseUrl, connections: 4, name: 'test', clockOffset: '25h' })
  atEnd(() => db.close())
  return { ...cell, ctx: { ...cell.ctx, db } }
}

export const isUnavailable = (error: unknown) => error instanceof Problem && error.code === 'unavailable'

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
