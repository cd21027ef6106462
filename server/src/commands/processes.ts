import type { AddressInfo, Server } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { isNative } from '../chains/evm/recover.ts'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import { openDatabase } from '../database/db.ts'
import { checkCellJoined } from '../directory/adopt.ts'
import { type Health, openHealth } from '../http/health.ts'
import { findLive } from '../networks.ts'
import { listConnected, openRails } from '../payments/rails.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { version } from '../version.ts'
import { startWorker } from '../worker.ts'
import { startAudit } from './audit.ts'
import { examine } from './doctor.ts'
import { openLaneSigners } from './signer.ts'

/** How long work in flight may take after a stop signal; orchestrators kill after 30 s by default. */
const stopTimeoutMs = 25_000

/** What `dev` adds to the application and to the console before they listen. */
export type Additions = {
  toApp?(app: FastifyInstance): void
  /** With the console's own connection. */
  toConsole?(console: FastifyInstance, ctx: Context): void
}

/** Serves HTTP until the process gets a stop signal. */
export async function serve(ctx: Context, additions: Additions = {}): Promise<void> {
  await untilStopped(ctx, [await orEnd(ctx, () => startServing(ctx, additions))])
}

/** Runs background work until the process gets a stop signal. */
export async function work(ctx: Context): Promise<void> {
  const health: Health = { isDraining: false }
  const { operations, signers } = await orEnd(ctx, async () => {
    requireWitnesses(ctx)
    requireSecretsKey(ctx)
    await checkCellJoined(ctx)
    const opened = await openLaneSigners(ctx)
    return { operations: await openHealth(ctx, health), signers: opened }
  })
  const worker = startWorker(ctx, signers)
  ctx.log.info({ ...version, operationsPort: portOf(operations) }, 'working')
  await untilStopped(ctx, [
    async () => {
      health.isDraining = true
      await worker.stop()
      operations.close()
    },
  ])
}

/** Compares past days with the chains until the process gets a stop signal. */
export async function audit(ctx: Context): Promise<void> {
  const health: Health = { isDraining: false }
  const { operations, auditing } = await orEnd(ctx, async () => {
    const started = startAudit(ctx)
    return { operations: await openHealth(ctx, health), auditing: started }
  })
  ctx.log.info({ ...version, operationsPort: portOf(operations) }, 'auditing')
  await untilStopped(ctx, [
    async () => {
      health.isDraining = true
      await auditing.stop()
      operations.close()
    },
  ])
}

/** A process that cannot start must exit, or nothing would restart it: its open connections must not keep it alive. */
async function orEnd<Result>(ctx: Context, start: () => Promise<Result>): Promise<Result> {
  try {
    return await start()
  } catch (error) {
    await Promise.all([ctx.db.close(), ctx.directory?.close()])
    throw error
  }
}

async function startServing(ctx: Context, additions: Additions): Promise<() => Promise<void>> {
  refuseFixedRates(ctx)
  requireSecretsKey(ctx)
  await checkCellJoined(ctx)
  const health: Health = { isDraining: false }
  // Only `serve` needs this, and it is more than half of the code to load.
  const { buildApp } = await import('../http/app.ts')
  const app = buildApp(ctx, health)
  additions.toApp?.(app)
  const address = await app.listen({ host: ctx.config.host, port: ctx.config.port })
  if (!isNative)
    ctx.log.warn(
      'checking signatures without libsecp256k1, about twenty times slower; reinstall so that the package secp256k1 finds its native build',
    )
  const console = await startConsole(ctx, health, additions).catch(async (error) => {
    await app.close()
    throw error
  })
  const operations = await openHealth(ctx, health).catch(async (error) => {
    await app.close()
    await console?.app.close()
    throw error
  })
  ctx.log.info(
    {
      ...version,
      ...{ address, operationsPort: portOf(operations), ...(console && { console: console.address }) },
    },
    'listening',
  )
  return async () => {
    // First fail the readiness check, then stop listening, then let requests in flight finish.
    health.isDraining = true
    await wait(ctx.config.drainSeconds * 1_000)
    await Promise.all([app.close(), console?.app.close()])
    operations.close()
  }
}

/** The console has a listener of its own, because its host is another than the API's. */
async function startConsole(
  ctx: Context,
  health: Health,
  additions: Additions,
): Promise<{ readonly app: FastifyInstance; readonly address: string } | null> {
  if (ctx.config.consoleUrl === '') return null
  const { buildConsole } = await import('../http/console/app.ts')
  const { consoleDatabaseUrl: url, databaseConnections: connections } = ctx.config
  const db = url === '' ? ctx.db : openDatabase({ url, connections, name: 'farthing-console' })
  const app = buildConsole({ ...ctx, db }, health, { ctx, examine: () => examineHere(ctx) })
  additions.toConsole?.(app, { ...ctx, db })
  if (db !== ctx.db) app.addHook('onClose', () => db.close())
  return { app, address: await app.listen({ host: ctx.config.host, port: ctx.config.consolePort }) }
}

/** What `doctor` finds from here. The settlers' keys are elsewhere: without their settings it does not look for them. */
async function examineHere(ctx: Context) {
  const config = { ...ctx.config, settlerKeysFile: '', signerSocket: '' }
  return await examine({ ...ctx, config }, async () => [])
}

async function untilStopped(ctx: Context, stops: readonly (() => Promise<void>)[]): Promise<void> {
  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name))
  })
  ctx.log.info({ signal }, 'stopping')
  // A kill is safe at any time; a graceful stop only spares clients a retry, so it must not take forever.
  setTimeout(() => process.exit(1), stopTimeoutMs + ctx.config.drainSeconds * 1_000).unref()
  for (const stop of stops) await stop()
  await Promise.all([ctx.db.close(), ctx.directory?.close()])
  ctx.log.info('stopped')
}

/**
 * Enough nodes must confirm that a payment is not on the chain: one that lies or lags must not make a payer pay twice.
 */
function requireWitnesses(ctx: Context): void {
  for (const { network, providers } of listConnected(openRails(ctx))) {
    if (providers < network.witnessesMin) {
      throw new ConfigError(
        `${network.id}_RPC_URLS must name nodes of at least ${network.witnessesMin} providers: a single one is not trusted.`,
      )
    }
  }
}

/** A copy of the database or of a backup must not be enough to forge webhooks. */
function requireSecretsKey({ config }: Context): void {
  const keys = readSecretsKeys(config.secretsKeyFile)
  const live = findLive(config)
  if (live && keys.length === 0)
    throw new ConfigError(
      `SECRETS_KEY_FILE is required, because ${live.id} is a live network: it seals webhook secrets. To make one, run: secrets create --out FILE, and give serve and work the same file.`,
    )
}

/** A fixed rate sells below the price as soon as the real one moves. */
function refuseFixedRates({ config }: Context): void {
  const live = findLive(config)
  if (live && config.fixedRates.size > 0)
    throw new ConfigError(
      `FIXED_RATES is for development: remove ${live.id} from NETWORKS, or unset FIXED_RATES.`,
    )
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
