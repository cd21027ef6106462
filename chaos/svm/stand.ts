import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { readSecretsKeys } from '../../server/src/secrets/key-file.ts'
import { check } from '../checker/check.ts'
import type { History, Sighting, Violation } from '../checker/history.ts'
import { readBooks } from '../checker/read-books.ts'
import { fitBooks, scanLedger } from '../checker/read-ledger.ts'
import { openObserver } from '../database/database.ts'
import type { Store } from '../harness/buyers.ts'
import type { Random } from '../harness/random.ts'
import { openStand, type Stand } from '../harness/stand.ts'
import { buyOnSolana, type SvmLoad } from './buyers.ts'
import { newSettlerKey, openLedger, settlerLamports, solana } from './ledger.ts'
import { openLedgerNodes } from './nodes.ts'

const settlersCount = 2
const payerUnits = 10n ** 12n
const readyMs = 90_000
/** The time limit of I14. */
const quietMs = 120_000

export type SvmStand = Awaited<ReturnType<typeof openSvmStand>>

/**
 * The usual stand, whose fleet also serves Solana: a ledger behind one node per provider, buyers, and two stores, one
 * of which waits until payments are final.
 */
export async function openSvmStand(
  random: Random,
  options: { readonly providers: readonly string[]; readonly buyers: number; readonly evmBuyers: number },
) {
  const { providers } = options
  const ledger = await openLedger()
  const nodes = await openLedgerNodes(ledger.url, providers)
  const closers: ((isKept: boolean) => unknown)[] = [nodes.close, ledger.stop]
  const close = async (isKept: boolean) => {
    for (const end of closers) await end(isKept)
  }
  try {
    const settlers = await Promise.all(Array.from({ length: settlersCount }, newSettlerKey))
    for (const { address } of settlers) await ledger.fund(address, { lamports: settlerLamports })
    const stand = await openStand(random.fork('stand'), {
      buyers: options.evmBuyers,
      isCluster: false,
      points: /^$/,
      metBefore: new Map(),
      providers,
      beside: {
        id: solana.id,
        rpcUrls: providers.map((provider, i) => `${provider}=${nodes.urls[i]}`).join(','),
        settlers,
      },
    })
    closers.unshift(stand.close)
    const observer = openObserver(stand.database.url('farthing'))
    closers.unshift(observer.close)
    nodes.observer = observer
    const stores = await openStores(stand, ledger)
    await untilReady(stand, stores.length)
    const [, patient] = stores
    if (!patient) throw new Error('there are no two stores')
    const load: SvmLoad = {
      ...stand.load,
      ...{ stores, patient, ledger, settlers: settlers.map(({ address }) => address) },
      ...{ paid: [], falseAnswers: [], falseRefusals: [], refusedTricks: new Map() },
      counts: {
        ...{ created: 0, paid: 0, refused: 0, signed: 0, unanswered: 0, wronged: 0 },
        ...{ refundsAsked: 0, refundsSigned: 0, refunded: 0, plain: 0, copied: 0, decided: 0 },
      },
    }
    const payers = await Promise.all(
      Array.from({ length: options.buyers }, () => ledger.newPayer(payerUnits)),
    )
    const busy = payers.map((payer, i) =>
      buyOnSolana(load, `sol-${i}`, payer, random.fork(`buyer on Solana ${i}`)),
    )
    stand.load.guests.push(...busy)

    return {
      stand,
      ledger,
      nodes,
      load,
      close,
      judge: () => judge(stand, ledger, nodes, load),
    }
  } catch (error) {
    await close(false)
    throw error
  }
}

/** Lets all buyers finish, waits until no work is left, and checks both chains. */
async function judge(
  stand: Stand,
  ledger: SvmLoad['ledger'],
  nodes: { readonly sightings: readonly Sighting[] },
  load: SvmLoad,
): Promise<{ violations: Violation[]; quietSeconds: number; histories: History[] }> {
  load.isOver = true
  load.giveUpAt = Date.now() + quietMs
  const { undone, quietSeconds } = await stand.finish()
  const db = new pg.Client(stand.database.url('farthing'))
  await db.connect()
  try {
    const left = await untilQuiet(db, quietMs)
    // The chains stop first, so that they are read in the same state as the database.
    ledger.end()
    await stand.chain.end()
    const evm = await stand.readHistory(undone)
    const books = await readBooks(db, solana.network, readSecretsKeys(stand.secretsKeyFile))
    const accounts = { settlers: load.settlers, wallets: books.wallets, settlerLamports }
    const chain = await scanLedger(ledger.url, solana.mint, accounts)
    const svm: History = {
      ...evm,
      books: fitBooks(books, chain),
      chain,
      sightings: nodes.sightings,
      undone: left,
    }
    const histories = [narrow(evm, stand.load.stores), narrow(svm, load.stores)]
    const told = [...load.falseAnswers, ...(await findTakenBack(db))]
    const violations = [
      ...told.map((what): Violation => ({ invariant: 'I1', what })),
      ...histories.flatMap(check),
    ]
    return { violations, quietSeconds, histories }
  } finally {
    await db.end()
  }
}

async function openStores({ fleet, load, receiver }: Stand, ledger: SvmLoad['ledger']): Promise<Store[]> {
  const stores: Store[] = []
  for (const finality of ['included', 'finalized']) {
    const wallet = await ledger.newPayer(0n)
    const made = await fleet.run('store', 'create', '--name', finality, '--solana-wallet', wallet.address)
    const [id = ''] = /st_\w+/.exec(made) ?? []
    const [key = ''] = /sk_live_\w+/.exec(made) ?? []
    const send = async (method: string, path: string, body: object) => {
      const response = await fetch(`http://127.0.0.1:${load.ports[0]}${path}`, {
        method,
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
      return (await response.json()) as { id: string }
    }
    const path = `/solana-${finality}`
    const endpoint = await send('POST', '/api/v1/webhook-endpoints', { url: `${receiver.url}${path}` })
    receiver.endpoints.set(path, endpoint.id)
    await send('PATCH', `/api/v1/stores/${id}`, { finalityPolicy: [{ minAmount: '0', finality }] })
    stores.push({ id, key })
  }
  return stores
}

/** Waits until lanes are active, the ledger is watched and the stores' accounts are found. */
async function untilReady({ observer }: Stand, stores: number): Promise<void> {
  const giveUpAt = Date.now() + readyMs
  for (;;) {
    const [row] = await observer.query<{ lanes: number; accounts: number }>(
      `select (select count(*)::int from settlers s join followers f on f.network = s.network
         where s.network = $1 and s.alive_at is not null and s.balance_wei is not null and f.head_time is not null) as lanes,
       (select count(*)::int from token_accounts where network = $1 and ready_at is not null) as accounts`,
      [solana.network],
    )
    if (row?.lanes === settlersCount && row.accounts === stores) return
    if (Date.now() > giveUpAt) throw new Error('the fleet did not become ready to settle on Solana')
    await wait(200)
  }
}

/** I14 on Solana. Returns the remaining work as sentences. */
async function untilQuiet(db: pg.Client, withinMs: number): Promise<string[]> {
  const giveUpAt = Date.now() + withinMs
  for (;;) {
    const { rows } = await db.query<{ what: string; count: string }>(
      `select 'transactions on Solana are watched' as what, count(*) from transactions
         where network = $1 and mined_at is null
       union all select 'credits on Solana are not final', count(*) from credits
         where network = $1 and orphaned_at is null and finalized_at is null
       union all select 'authorizations on Solana are unresolved', count(*) from authorizations
         where network = $1 and state in ('claimed', 'sent') and not is_credited
       union all select 'events have no sequence', count(*) from events where sequence is null
       union all select 'deliveries are pending', count(*) from deliveries where state = 'pending'`,
      [solana.network],
    )
    const undone = rows.filter(({ count }) => count !== '0').map(({ what, count }) => `${count} ${what}`)
    if (undone.length === 0 || Date.now() > giveUpAt) return undone
    await wait(200)
  }
}

/** Payments that were final and then taken back. */
async function findTakenBack(db: pg.Client): Promise<string[]> {
  const { rows } = await db.query<{ hash: string }>(
    `select transaction_hash as hash from credits
     where network = $1 and finalized_at is not null and orphaned_at is not null`,
    [solana.network],
  )
  return rows.map(({ hash }) => `${hash} was final and then taken back`)
}

/** A history without the rows of other stores, which another history has. */
function narrow(history: History, stores: readonly Store[]): History {
  const { books, answers, received } = history
  const isOwn = ({ storeId }: { readonly storeId: string }) => stores.some(({ id }) => id === storeId)
  const endpoints = books.endpoints.filter(isOwn)
  const events = books.events.filter(isOwn)
  const ids = new Set([...endpoints, ...events].map(({ id }) => id))
  return {
    ...history,
    books: {
      ...books,
      checkouts: books.checkouts.filter(isOwn),
      events,
      endpoints,
      deliveries: books.deliveries.filter(({ eventId }) => ids.has(eventId)),
    },
    answers: answers.filter(isOwn),
    received: received.filter(({ endpointId }) => ids.has(endpointId)),
  }
}
