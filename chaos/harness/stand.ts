import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { keccak256, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { createKeyFile, readSecretsKeys } from '../../server/src/secrets/key-file.ts'
import { check } from '../checker/check.ts'
import type { History, Restore, Violation } from '../checker/history.ts'
import { untilDelivered, untilQuiet } from '../checker/quiet.ts'
import { readBooks } from '../checker/read-books.ts'
import { scanChain } from '../checker/read-chain.ts'
import { openDatabase, openObserver } from '../database/database.ts'
import { openPatroni } from '../database/patroni.ts'
import { openDatabaseProxy } from '../database/proxy.ts'
import { buy, type Load } from './buyers.ts'
import { type ChaosChain, openChain, places, settlerKey } from './chain.ts'
import { openFleet, openProgram, type Program } from './fleet.ts'
import type { Episode, Phase } from './lies.ts'
import { openNodeProxy } from './node-proxy.ts'
import { copyFromChain, decide, transferPlainly } from './others.ts'
import type { Random } from './random.ts'
import { openReceiver } from './receiver.ts'
import { proveWallet, type Refunder, refund } from './refunder.ts'

/**
 * Accounts of the chain that nothing else uses: each cell has two settlers, and two wallets whose keys sign refunds.
 * Most runs have only the first cell.
 */
const accountsOfCells = [
  { settlers: [settlerKey(1), settlerKey(2)], wallets: [settlerKey(3), settlerKey(4)] },
  { settlers: [settlerKey(5), settlerKey(6)], wallets: [settlerKey(7), settlerKey(8)] },
]
/** The share of buyers' signatures that are valid for less than half a minute. */
const briefShareUsual = 0.1
/** Two differ by one cent. One is more than a payer with money for one checkout has. */
const prices = ['1.00', '0.99', '2.50']
/** The time limit of I14. */
const quietMs = 120_000
/** A payment that the backup holds as claimed and unsent is not sent after a restore: it waits until it expires. */
const unsentMs = 300_000
/** Far longer than a delivery takes without faults. */
const deliveredMs = 10_000
const readyMs = 90_000
const closeMs = 20_000

/** One of several cells: each has one `serve` and one `work`. */
export type Cell = {
  readonly place: number
  readonly tag: string
  readonly chain: ChaosChain
  readonly program: Program
  readonly briefShare: number
}

/** A network of another family, which the fleet serves too, and its settlers. The caller opens its stores. */
export type Beside = {
  readonly id: string
  readonly rpcUrls: string
  readonly settlers: readonly { readonly key: string; readonly address: string }[]
}

export type Stand = Awaited<ReturnType<typeof openStand>>

/**
 * The stand: a whole deployment for fault injection. PostgreSQL behind a proxy that loses replies, a chain behind nodes
 * that misbehave, two `serve` and two `work`, two stores with webhooks (one waits for `safe`), and buyers.
 */
export async function openStand(
  random: Random,
  options: {
    readonly buyers: number
    readonly isCluster: boolean
    readonly points: RegExp
    readonly metBefore: ReadonlyMap<string, number>
    /** If given, the stand is on a live network, with a node of each of these providers. */
    readonly providers: readonly string[] | null
    /** If given, the stand is one of several cells, and the caller closes their chain. */
    readonly cell?: Cell
    readonly beside?: Beside
  },
) {
  const { providers, cell, beside } = options
  const { settlers, wallets } = accountsOfCells[cell?.place ?? 0] ?? assert.fail('too many cells')
  const place = providers ? places.BASE_MAINNET : places.LOCAL
  const { network } = place
  const folder = await mkdtemp(join(tmpdir(), 'farthing-chaos-'))
  const closers: (() => unknown)[] = []
  const close = async (isKept = false) => {
    // A part that hangs must not keep the rest from closing.
    for (const end of closers.toReversed()) await Promise.race([end(), wait(closeMs)])
    if (!isKept) await rm(folder, { recursive: true, force: true })
  }
  try {
    const database = await (options.isCluster ? openPatroni(folder) : openDatabase(folder))
    closers.push(database.stop)
    const admin = openObserver(database.url('postgres'))
    await admin.query('create database farthing')
    await admin.close()
    const observer = openObserver(database.url('farthing'))
    closers.push(observer.close)
    const databaseProxy = await openDatabaseProxy(database)
    closers.push(databaseProxy.close)
    const chain = cell?.chain ?? (await openChain(folder, place))
    if (!cell) closers.push(chain.stop)
    // On its own connection, so that the harness's other queries never delay it.
    const nodeObserver = openObserver(database.url('farthing'))
    closers.push(nodeObserver.close)
    const nodes = await openNodeProxy(chain.url, nodeObserver, providers ?? undefined)
    closers.push(nodes.close)
    const receiver = await openReceiver(random.fork('receiver'), providers ? folder : null)
    closers.push(receiver.close)

    const keysFile = join(folder, 'settlers')
    const settlerKeys = [...settlers, ...(beside?.settlers ?? [])].map(({ key }) => key)
    await writeFile(keysFile, settlerKeys.join('\n'), { mode: 0o600 })
    const secretsKeyFile = join(folder, 'secrets.keys')
    await createKeyFile(secretsKeyFile)
    const environment = {
      ...(cell && { CELL: cell.tag }),
      DATABASE_URL: `postgres://farthing@127.0.0.1:${databaseProxy.port}/farthing`,
      DATABASE_CONNECTIONS: '8',
      BASE_URL: 'http://127.0.0.1:1',
      NETWORKS: beside ? `${place.id},${beside.id}` : place.id,
      // Without labels, the nodes of the local network count as one provider.
      [`${place.id}_RPC_URLS`]: nodes.urls
        .map((url, i) => (providers ? `${providers[i]}=${url}` : url))
        .join(','),
      ...(beside && { [`${beside.id}_RPC_URLS`]: beside.rpcUrls, SETTLER_SOL_PER_DAY: '' }),
      ...(receiver.certificateFile && {
        NODE_EXTRA_CA_CERTS: receiver.certificateFile,
        WEBHOOK_DANGEROUS_PRIVATE_NETWORKS: '127.0.0.0/8',
      }),
      MIGRATE_ON_START: 'false',
      TRUSTED_PROXIES: '127.0.0.1',
      OPERATIONS_PORT: '0',
      KEY_REQUESTS_PER_SECOND: '1000000',
      ADDRESS_REQUESTS_PER_SECOND: '1000000',
      SETTLER_ETH_PER_DAY: '',
      SETTLER_ETH_PER_TRANSACTION: '',
      ECB_RATES_URL: '',
      EXCHANGE_RATES_URL: '',
      SECRETS_KEY_FILE: secretsKeyFile,
      SETTLER_KEYS_FILE: keysFile,
    }
    const program = cell?.program ?? (await openProgram(folder))
    const fleet = await openFleet(folder, program, environment, cell ? 1 : 2)
    closers.push(async () => {
      for (const member of fleet.members) await fleet.end(member, 'SIGKILL')
    })
    await fleet.run('migrate')
    // The cluster trusts every connection from loopback, so the roles need no passwords.
    for (const role of ['serve', 'work']) await observer.query(`alter role farthing_${role} login`)
    const stores: Refunder[] = []
    for (const [i, wallet] of wallets.entries()) {
      const mode = providers ? [] : ['--test']
      const named = ['--name', `Shop ${i}`, ...mode, '--evm-wallet', wallet.address]
      const made = await fleet.run('store', 'create', ...named)
      const [id = ''] = /st_\w+/.exec(made) ?? []
      const [key = ''] = /sk_(test|live)_\w+/.exec(made) ?? []
      stores.push({ id, key, walletKey: wallet.key })
    }
    for (const { address } of settlers) await fleet.run('settler', 'add', place.id, address)
    for (const { address } of beside?.settlers ?? [])
      await fleet.run('settler', 'add', beside?.id ?? '', address)
    const keys = Array.from({ length: options.buyers }, (_, i) =>
      keccak256(toHex(`buyer ${cell?.tag ?? ''}${i}`)),
    )
    await chain.mint(
      keys.map((key) => privateKeyToAccount(key).address),
      10n ** 12n,
    )
    for (const member of fleet.members) fleet.start(member)
    const ports = fleet.members.filter(({ command }) => command === 'serve').map(({ port }) => port)
    await prepareStores(stores, ports[0] ?? 0, receiver)
    await untilReady(observer)
    // Read now, because the server forgets old blocks.
    const [{ firstBlock } = { firstBlock: 0 }] = await observer.query<{ firstBlock: number }>(
      'select min(number)::int as "firstBlock" from blocks where network = $1',
      [network],
    )

    const counts = {
      ...{ created: 0, paid: 0, refused: 0, signed: 0, unanswered: 0, wronged: 0 },
      ...{ refundsAsked: 0, refundsSigned: 0, refunded: 0, plain: 0, copied: 0, decided: 0 },
    }
    const course = {
      briefShare: cell?.briefShare ?? briefShareUsual,
      isOver: false,
      hesitateMsMax: 0,
      giveUpAt: Infinity,
    }
    const begunAt = Date.now()
    const readReserved = async (checkoutId: string) => {
      const rows = await observer.query<{ amount: string }>(
        'select amount::text from reserved_amounts where checkout_id = $1 and network = $2',
        [checkoutId, network],
      )
      return rows[0] ? BigInt(rows[0].amount) : null
    }
    const people = { answers: [], presented: [], paid: [], guests: [], withdrawers: [] }
    const load: Load = { stores, ports, prices, readReserved, chain, begunAt, counts, ...people, ...course }
    const restores: Restore[] = []
    const episodes: Episode[] = []
    const phases: Phase[] = []
    const busy = [
      ...keys.map((key, i) => buy(load, `order-${i}`, key, random.fork(`buyer ${i}`))),
      ...stores.map((store, i) => refund(load, store, random.fork(`refunds ${i}`))),
      ...stores.map((store, i) => decide(load, store, random.fork(`decisions ${i}`))),
      transferPlainly(load, random.fork('plain transfers')),
      copyFromChain(load, random.fork('copied signatures')),
    ]

    return {
      folder,
      database,
      databaseProxy,
      chain,
      nodes,
      fleet,
      load,
      observer,
      receiver,
      secretsKeyFile,
      restores,
      /** The settlers of other cells on this chain. */
      strangers: new Set(
        accountsOfCells
          .filter((_, i) => cell && i !== cell.place)
          .flatMap((other) => other.settlers.map(({ address }) => address)),
      ),
      /** The lies told so far. */
      episodes,
      phases,
      /** Only crash points with matching names are armed. */
      points: options.points,
      /** How often each crash point was armed, including those that earlier runs reached. */
      armed: new Map(options.metBefore),
      close,
      /** Lets the buyers finish, waits until no work is left, and checks the invariants. */
      async judge(): Promise<{ violations: Violation[]; quietSeconds: number; history: History }> {
        const { undone, quietSeconds } = await this.finish()
        // The chain stops first, so that the database and the chain are read in the same state.
        await chain.end()
        const history = await this.readHistory(undone)
        return { violations: check(history), quietSeconds, history }
      },
      /** Lets the buyers finish, and waits until no work is left. */
      async finish(): Promise<{ readonly undone: readonly string[]; readonly quietSeconds: number }> {
        const startedAt = Date.now()
        load.isOver = true
        const patienceMs = quietMs + (restores.length > 0 ? unsentMs : 0)
        load.giveUpAt = startedAt + patienceMs
        await Promise.all([...busy, ...load.guests])
        await chain.replaceLost()
        const db = new pg.Client(database.url('farthing'))
        await db.connect()
        try {
          const left = Math.max(1_000, startedAt + patienceMs - Date.now())
          const undone = await untilQuiet(db, chain.url, network, left)
          return { undone, quietSeconds: Math.round((Date.now() - startedAt) / 1_000) }
        } finally {
          await db.end()
        }
      },
      /** Ends the processes and reads the remaining state, once the chain has stopped. */
      async readHistory(undone: readonly string[]): Promise<History> {
        const db = new pg.Client(database.url('farthing'))
        await db.connect()
        try {
          // Without blocks no checkout changes any more, so only the latest changes are still to be delivered.
          await untilDelivered(db, chain.url, network, deliveredMs)
          await Promise.all(fleet.members.map((member) => fleet.end(member, 'SIGTERM')))
          const books = { ...(await readBooks(db, network, readSecretsKeys(secretsKeyFile))), firstBlock }
          const accounts = { settlers: settlers.map(({ address }) => address), wallets: books.wallets }
          return {
            books,
            chain: await scanChain(chain.url, place.token, accounts, {
              reachedAt: chain.reachedAt,
              replaced: chain.replaced,
            }),
            answers: load.answers,
            presented: load.presented,
            received: receiver.received,
            sightings: nodes.sightings,
            undone,
            restores,
            clocksDifferMs: fleet.clocksDifferMs(),
          }
        } finally {
          await db.end()
        }
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function prepareStores(
  stores: readonly Refunder[],
  port: number,
  receiver: Awaited<ReturnType<typeof openReceiver>>,
): Promise<void> {
  for (const [i, store] of stores.entries()) {
    const { id, key } = store
    const send = async (method: string, path: string, body?: object) => {
      for (let tries = 0; ; tries++) {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, {
          method,
          headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
          ...(body && { body: JSON.stringify(body) }),
        }).catch(() => null)
        if (response?.ok) return (await response.json()) as { id: string }
        if (response || tries === 300) throw new Error(`${path}: ${await response?.text()}`)
        await wait(200)
      }
    }
    const path = `/${i}`
    const endpoint = await send('POST', '/api/v1/webhook-endpoints', { url: `${receiver.url}${path}` })
    receiver.endpoints.set(path, endpoint.id)
    await proveWallet(store, send)
    if (i === 1)
      await send('PATCH', `/api/v1/stores/${id}`, { finalityPolicy: [{ minAmount: '0', finality: 'safe' }] })
  }
}

/** Waits until lanes are active and blocks are read: from then on payments are accepted. */
async function untilReady(observer: ReturnType<typeof openObserver>): Promise<void> {
  const giveUpAt = Date.now() + readyMs
  for (;;) {
    const rows = await observer.query(
      `select 1 as one from settlers s join followers f on f.network = s.network
       where s.balance_wei is not null and f.head_time is not null`,
    )
    if (rows.length > 0) return
    if (Date.now() > giveUpAt) throw new Error('the fleet did not become ready to settle')
    await wait(200)
  }
}
