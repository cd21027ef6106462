import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import type { KeyPairSigner } from '@solana/kit'
import type { CrashPoint } from '../../../src/crash.ts'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { registerWallet } from '../../../src/stores/wallets.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { newSettler, type TestSettler, type TestSvm } from '../../support/chain/svm.ts'
import { type Changes, svmHeader } from '../../support/chain/svm-payment.ts'
import { operator } from '../../support/operator.ts'
import { svmPayTo } from '../../support/shop.ts'
import { checkBooks } from '../adversity/svm-books.ts'
import { openClient } from './client.ts'
import { endProgram, isAlive, type Program, startProgram, until, untilCrashed } from './processes.ts'

type Command = 'serve' | 'work'
const lamports = 10_000_000_000n

export type SvmDeployment = Awaited<ReturnType<typeof openSvmDeployment>>

/** A complete Farthing on a Solana chain: `serve` and `work` are processes that can be killed and started again. */
export async function openSvmDeployment(
  chain: TestSvm,
  options: { readonly serves?: number; readonly works?: number; readonly settlers?: number } = {},
) {
  const { id, caip2, mode } = chain.network
  const settings = { NETWORKS: id, [`${id}_RPC_URLS`]: chain.url }
  const { ctx, databaseUrl } = await openTestApp(settings)
  const { key, store } = await makeStore(ctx, { mode, evmWallet: null })
  await chain.fund(svmPayTo, { token: [chain.mint, 0n] })
  const wallet = { walletAddress: svmPayTo, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(ctx, store.id, operator, { family: 'SOLANA', ...wallet }, ctx.now())
  const settlers: TestSettler[] = []
  for (let i = 0; i < (options.settlers ?? 1); i++) settlers.push(await newSettler(chain, lamports))
  for (const { address } of settlers) await insertSettler(ctx.db, caip2, address, 0)
  const environment = {
    BASE_URL: 'https://farthing.example',
    DATABASE_URL: databaseUrl,
    DATABASE_CONNECTIONS: '8',
    ...settings,
    MIGRATE_ON_START: 'false',
    OPERATIONS_PORT: '0',
    PORT: '0',
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
    SETTLER_KEYS_FILE: await writeKeys(settlers),
  }
  const running = new Map<string, Program>()
  const addresses = new Map<string, string>()
  const databaseName = new URL(databaseUrl).pathname.slice(1)
  let offsetSeconds = 0

  const stop = async (command: Command, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM', place = 0) => {
    const program = running.get(`${command} ${place}`)
    if (program) await endProgram(program, signal)
  }
  const start = async (command: Command, crashAt?: CrashPoint, place = 0): Promise<Program> => {
    const name = `${command} ${place}`
    await stop(command, 'SIGTERM', place)
    const program = startProgram([command], environment, crashAt)
    running.set(name, program)
    if (command === 'serve') {
      const found = await until(
        'serve listens',
        async () => !isAlive(program) || /"address":"([^"]+)"/.exec(program.output())?.[1],
      )
      addresses.set(name, typeof found === 'string' ? found : assert.fail(program.output()))
    }
    return program
  }
  /** Starts a process that crashes at a point, and waits until it has. Its leases expire at once. */
  const crash = async (command: Command, point: CrashPoint): Promise<void> => {
    await untilCrashed(await start(command, point), point)
    if (command !== 'work') return
    offsetSeconds += 11
    await ctx.db.query(
      `alter database ${databaseName} set farthing.clock_offset = '${offsetSeconds} seconds'`,
    )
  }
  const untilReady = () =>
    until('a lane is live', async () => {
      const rows = await ctx.db.query(
        `select 1 as one from settlers s join followers f on f.network = s.network
         where s.alive_at is not null and s.balance_wei is not null and f.head_time is not null`,
      )
      return rows.length === settlers.length
    })

  for (let i = 0; i < (options.serves ?? 1); i++) await start('serve', undefined, i)
  for (let i = 0; i < (options.works ?? 1); i++) await start('work', undefined, i)
  await untilReady()
  const client = openClient({ key, address: () => addresses.get('serve 0') ?? '' })
  const sign = async (checkoutId: string, payer: KeyPairSigner, changes: Changes = {}): Promise<string> => {
    const { status, body } = await client.pay(checkoutId)
    assert.equal(status, 402, JSON.stringify(body))
    return await svmHeader(chain, body as unknown as PaymentRequired, payer, changes)
  }

  return {
    chain,
    db: ctx.db,
    key,
    settlers,
    start,
    stop,
    crash,
    untilReady,
    addresses: () => [...addresses.values()],
    create: client.create,
    read: client.read,
    pay: client.pay,
    ask: client.ask,
    sign,
    /** Pays as the documentation says: signs again only if the payment is proven dead. */
    async payUntilPaid(checkoutId: string, payer: KeyPairSigner): Promise<string> {
      for (;;) {
        const answer = await client.pay(checkoutId, await sign(checkoutId, payer))
        if (answer.status === 200) return answer.transaction ?? ''
        assert.equal(answer.status, 402, JSON.stringify(answer))
        assert.equal(answer.body.error, 'blockhash_expired')
      }
    },
    /** Waits until an authorization of the checkout is in this state. */
    async untilState(checkoutId: string, state: 'claimed' | 'sent' | 'rejected' | 'dead'): Promise<void> {
      await until(`an authorization of ${checkoutId} is ${state}`, async () => {
        const rows = await ctx.db.query(
          'select 1 as one from authorizations where checkout_id = $1 and state = $2',
          [checkoutId, state],
        )
        return rows.length > 0
      })
    },
    /** The slot of a checkout's payment. */
    async slotOf(checkoutId: string): Promise<number> {
      const [row] = await ctx.db.query<{ block_number: string }>(
        'select block_number from credits where checkout_id = $1 and orphaned_at is null',
        [checkoutId],
      )
      return Number.parseInt(row?.block_number ?? assert.fail(), 10)
    },
    async events(checkoutId: string): Promise<string[]> {
      const rows = await ctx.db.query<{ type: string }>(
        'select type from events where checkout_id = $1 order by position',
        [checkoutId],
      )
      return rows.map(({ type }) => type)
    },
    check: () =>
      checkBooks(
        ctx.db,
        chain,
        settlers.map(({ address }) => ({ address, funded: lamports })),
      ),
  }
}

/** Writes keys the way key files hold them: 64 numbers in brackets. */
async function writeKeys(settlers: readonly TestSettler[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-keys-'))
  after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'settlers')
  await writeFile(file, settlers.map(({ secret }) => JSON.stringify([...secret])).join('\n'), { mode: 0o600 })
  return file
}
