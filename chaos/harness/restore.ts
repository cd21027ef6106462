import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import type { Books, Restore } from '../checker/history.ts'
import { readBooks } from '../checker/read-books.ts'
import { createOnce, type Load, payUntilKnown, type Store } from './buyers.ts'
import type { Random } from './random.ts'
import type { Stand } from './stand.ts'
import type { Tally } from './tally.ts'

/** Long enough for everything that killed processes had sent to pass the node proxy. */
const drainMs = 500
/** How long the server refuses payments after a restore, in seconds of the chain. */
const refusedSeconds = 360
const waitingMs = (refusedSeconds + 60) * 1_000
const repeatsMax = 10
/** Makes buyers slow, so that checkouts which are OPEN in the backup are paid after it. */
const hesitateMsMax = 5_000

/**
 * Restores the database from a backup that was taken under load. Buyers continue for a while after the backup; then
 * every process and PostgreSQL are killed, and the harness follows the documented procedure for operators. Finally it
 * repeats some of the earlier requests, and the checker compares the answers.
 */
export async function restore(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const { database, fleet, load } = stand
  if (!database.backup) return
  load.hesitateMsMax = hesitateMsMax
  await wait(random.between(1_000, 3_000))
  const copied = await look(stand)
  await database.backup.take()
  await wait(random.between(2_000, 8_000))
  const before = await Promise.all(load.stores.map((store) => readLog(load, store, '?limit=1')))

  await Promise.all(fleet.members.map((member) => fleet.end(member, 'SIGKILL')))
  await wait(drainMs)
  const lost = await look(stand)
  const lostAt = new Date()
  await database.backup.putBack()
  await fleet.run('reconcile', '--yes')
  tally.count('restores')
  tally.count('payments after a backup', lost.credits.length - copied.credits.length)
  tally.count('checkouts after a backup', lost.checkouts.length - copied.checkouts.length)
  await Promise.all([
    startAll(stand).then(() => endWaiting(stand)),
    askForTermsAgain(load, copied, lost, random),
    createAgain(load, copied, random),
  ])

  const cursors: Restore['cursors'][number][] = []
  for (const [i, store] of load.stores.entries()) {
    const { status, body } = await readLog(load, store, `?after=${before[i]?.body.cursor}`)
    const resumed = await readLog(load, store, `?after=${body.resumeAfter}`)
    cursors.push({ storeId: store.id, status, code: body.code ?? '', resumedStatus: resumed.status })
  }
  stand.restores.push({ copied, lost, lostAt, cursors })
}

async function look({ database, chain }: Stand): Promise<Books> {
  const db = new pg.Client(database.url('farthing'))
  await db.connect()
  try {
    return await readBooks(db, chain.place.network)
  } finally {
    await db.end()
  }
}

/** In the documented order: `serve` answers for a moment before any process has read the chain. */
export async function startAll({ fleet }: Stand): Promise<void> {
  for (const command of ['serve', 'work']) {
    const own = fleet.members.filter((member) => member.command === command)
    for (const member of own) fleet.start(member)
    for (const member of own)
      if (!(await fleet.untilReady(member))) throw new Error(`${member.name} does not start after a restore`)
  }
}

type Log = {
  readonly status: number
  readonly body: { readonly cursor?: string; readonly code?: string; readonly resumeAfter?: string }
}

async function readLog({ ports }: Load, { key }: Store, query: string): Promise<Log> {
  const url = `http://127.0.0.1:${ports[0]}/api/v1/events${query}`
  const response = await fetch(url, { headers: { 'x-api-key': key } })
  return { status: response.status, body: (await response.json()) as Log['body'] }
}

/**
 * After a restore, the server refuses payments for as long as an authorization whose claim was lost could be valid,
 * because its bytes may still be on their way. The harness knows when none are on their way: every process that could
 * have sent any was killed, buyers submit their payments as soon as they sign, and the node's pool is empty. From then
 * on waiting proves nothing, so it is skipped by dating the restore's start back. The server still waits for a deep
 * block that is newer than now. While the pool holds a transaction, nothing is skipped. Transactions of another cell's
 * settlers do not matter, because they carry none of our payments.
 */
async function endWaiting({ chain, observer, strangers }: Stand): Promise<void> {
  const giveUpAt = Date.now() + waitingMs
  for (let isPassedOver = false; ; ) {
    const waiting = await observer.query('select 1 as one from restores where finished_at is null')
    if (waiting.length === 0) return
    const pool = await chain.call<{ pending: object; queued: object }>('txpool_content')
    const senders = [...Object.keys(pool.pending), ...Object.keys(pool.queued)]
    if (!isPassedOver && senders.every((sender) => strangers.has(sender.toLowerCase()))) {
      await observer.query(
        'update restores set started_at = now() - make_interval(secs => $1) where finished_at is null',
        [refusedSeconds],
      )
      isPassedOver = true
    }
    if (Date.now() > giveUpAt) throw new Error('the server still refuses payments long after a restore')
    await wait(200)
  }
}

/** Repeats creates that the backup contains, with their keys. */
async function createAgain(load: Load, copied: Books, random: Random): Promise<void> {
  const ids = new Set(copied.checkouts.map(({ id }) => id))
  const creates = load.answers.filter(
    ({ kind, status, checkoutId }) => kind === 'create' && status === 201 && ids.has(checkoutId ?? ''),
  )
  for (const { storeId, key = '', sent = '' } of creates.slice(-repeatsMax)) {
    const store = load.stores.find(({ id }) => id === storeId)
    if (store) await createOnce(load, store, key, sent, random.fork(key))
  }
}

/** Requests checkouts that were paid after the backup, as a reloaded page does. No payer may be asked to pay again. */
async function askForTermsAgain(load: Load, copied: Books, lost: Books, random: Random): Promise<void> {
  const before = new Set(copied.checkouts.flatMap(({ id, status }) => (status === 'COMPLETED' ? [id] : [])))
  const paid = lost.checkouts.filter(({ id, status }) => status === 'COMPLETED' && !before.has(id))
  await Promise.all(
    paid.map(async ({ id, storeId, orderId }) => {
      const store = load.stores.find((one) => one.id === storeId)
      if (store) await payUntilKnown(load, store, id, random.fork(orderId))
    }),
  )
}
