import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { Address, Hex } from 'viem'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import type { CrashPoint } from '../../../src/crash.ts'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { fundedKey, type TestChain } from '../../support/chain/evm.ts'
import { newPayer, type Payer } from '../../support/chain/evm-payment.ts'
import { checkInvariants } from '../adversity/invariants.ts'
import { openClient } from './client.ts'
import { endProgram, isAlive, type Program, startProgram, until, untilCrashed } from './processes.ts'

/** The store's wallet; no test holds its key. */
export const payTo = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'

/** The authorization in a PAYMENT-SIGNATURE header. */
export type Authorized = { readonly from: Address; readonly nonce: Hex; readonly validBefore: string }

export type Deployment = Awaited<ReturnType<typeof openDeployment>>

type Command = 'serve' | 'work'

/**
 * A complete Farthing on a chain: its own database, a store, its settlers, and `serve` and `work` as processes that can
 * be killed and started again. Everything stops with the test that opened it.
 */
export async function openDeployment(
  chain: TestChain,
  options: {
    readonly rpcUrls?: readonly string[]
    readonly payers?: number
    readonly settlers?: number
    readonly start?: boolean
  } = {},
) {
  const { id, caip2, mode } = chain.network
  const rpcSettings = {
    NETWORKS: id,
    [`${id}_RPC_URLS`]: (options.rpcUrls ?? [chain.url]).join(','),
  }
  const { ctx, databaseUrl } = await openTestApp(rpcSettings)
  const { key } = await makeStore(ctx, { mode, evmWallet: payTo })
  const settlerKeys = Array.from({ length: options.settlers ?? 1 }, (_, i) => fundedKey(i + 1))
  const [settler = assert.fail(), ...others] = settlerKeys.map((text) => openSigner(text).address)
  for (const account of [settler, ...others]) await insertSettler(ctx.db, caip2, account, 0)
  const settlerKeysFile = await writeKeys(settlerKeys)
  const payers = Array.from({ length: options.payers ?? 8 }, newPayer)
  await chain.mint(
    payers.map(({ address }) => address),
    1_000_000_000n,
  )

  let address = ''
  const environment = {
    BASE_URL: 'https://farthing.example',
    DATABASE_URL: databaseUrl,
    DATABASE_CONNECTIONS: '8',
    ...rpcSettings,
    MIGRATE_ON_START: 'false',
    OPERATIONS_PORT: '0',
    PORT: '0',
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }
  const running: Partial<Record<Command, Program>> = {}
  const databaseName = new URL(databaseUrl).pathname.slice(1)
  let offsetSeconds = 0

  /** Starts a process, after gently stopping an earlier one. */
  const start = async (command: Command, crashAt?: CrashPoint): Promise<Program> => {
    await stop(command)
    const program = startProgram(
      [command],
      command === 'work' ? { ...environment, SETTLER_KEYS_FILE: settlerKeysFile } : environment,
      crashAt,
    )
    running[command] = program
    if (command === 'serve') {
      address = await until(
        'serve listens',
        async () => !isAlive(program) || /"address":"([^"]+)"/.exec(program.output())?.[1],
      ).then((found) => (typeof found === 'string' ? found : assert.fail(program.output())))
    }
    return program
  }

  const stop = async (command: Command, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> => {
    const program = running[command]
    if (program) await endProgram(program, signal)
  }

  /**
   * Moves the database's clock for every connection from now on, so that the leases of a killed process expire without
   * anyone waiting for them.
   */
  const moveClock = async (seconds: number): Promise<void> => {
    offsetSeconds += seconds
    await ctx.db.query(
      `alter database ${databaseName} set farthing.clock_offset = '${offsetSeconds} seconds'`,
    )
  }

  /** Starts a process that crashes at a point, and waits until it has. */
  const crash = async (command: Command, point: CrashPoint): Promise<void> => {
    await untilCrashed(await start(command, point), point)
    if (command === 'work') await moveClock(11)
  }

  /** Waits until a lane is live and a block has been read; from then on payments are accepted. */
  const untilReady = async (): Promise<void> => {
    await until('a lane is live', async () => {
      const rows = await ctx.db.query(
        `select 1 as one from settlers s join followers f on f.network = s.network
         where s.alive_at is not null and s.balance_wei is not null and f.head_time is not null`,
      )
      return rows.length > 0
    })
  }

  if (options.start !== false) {
    await Promise.all([start('serve'), start('work')])
    await untilReady()
  }
  const client = openClient({ key, address: () => address })

  return {
    ...client,
    chain,
    ctx,
    db: ctx.db,
    databaseUrl,
    databaseName,
    environment,
    key,
    settler,
    settlerKeysFile,
    running,
    start,
    stop,
    crash,
    moveClock,
    untilReady,
    /** One of the funded payers, in turn. */
    payer: (index: number): Payer => payers[index % payers.length] ?? assert.fail(),
    /** Checks every invariant of the books against the chain, within a minute of the last fault. */
    check: () => checkInvariants({ db: ctx.db, chain, answers: offsetSeconds === 0 ? client.answers : [] }),
    /** A new payer that nobody else uses. */
    async fund(units = 1_000_000_000n): Promise<Payer> {
      const payer = newPayer()
      await chain.mint(payer.address, units)
      return payer
    },
    /** Waits until an authorization is in one of these states. */
    async untilState(header: string, ...states: readonly ('claimed' | 'sent')[]): Promise<void> {
      const { nonce } = readHeader(header)
      await until(`${nonce} is ${states.join(' or ')}`, async () => {
        const found = await ctx.db.query(
          'select 1 as one from authorizations where nonce = $1 and state = any($2)',
          [nonce, states],
        )
        return found.length > 0
      })
    },
    /** Stops everything before the test ends. */
    async end(): Promise<void> {
      await Promise.all([stop('serve', 'SIGKILL'), stop('work', 'SIGKILL')])
      await chain.stop()
    },
    /** Types of a checkout's events, oldest first. */
    async events(checkoutId: string): Promise<string[]> {
      const rows = await ctx.db.query<{ type: string }>(
        'select type from events where checkout_id = $1 order by position',
        [checkoutId],
      )
      return rows.map(({ type }) => type)
    },
    /** A time near enough for the chain to jump past, and far enough for a slow machine to accept. */
    async soon(): Promise<bigint> {
      const now = BigInt(Math.floor(Date.now() / 1_000))
      const time = await chain.time()
      return (time > now ? time : now) + 40n
    },
    /** Moves a checkout's expiry, as if it had been created with a shorter lifetime. */
    async expireIn(checkoutId: string, seconds: number): Promise<void> {
      await ctx.db.query(
        'update checkouts set expires_at = clock() + make_interval(secs => $2) where id = $1',
        [checkoutId, seconds],
      )
    },
  }
}

export function readHeader(header: string): Authorized {
  return JSON.parse(Buffer.from(header, 'base64').toString()).payload.authorization
}

async function writeKeys(keys: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-keys-'))
  after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'settlers')
  await writeFile(file, keys.join('\n'), { mode: 0o600 })
  return file
}
