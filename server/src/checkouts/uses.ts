import type { Database } from '../database/db.ts'
import {
  keyOf,
  type Ownership,
  settlerOwnership,
  type Uses,
  walletOwnership,
} from '../directory/directory.ts'
import type { Family, Mode } from '../networks.ts'
import { listUsedSettlers, writeSettlersElsewhere } from '../payments/settlers/rows.ts'
import { undoHours } from '../stores/change.ts'
import { writeElsewhere, writeReleased } from '../stores/wallets.ts'

/**
 * Wallets per page. For each page, `findBusy` reads the indexes of unfinished work once for all its retired wallets.
 */
const walletsPerPage = 5_000

/** What this cell must own in the directory. */
export function openUses(db: Database): Uses {
  const readSettlers = async () =>
    (await listUsedSettlers(db)).map(({ network, address }) => settlerOwnership(network, address))

  async function filterUsed(wallets: readonly WalletRecord[]): Promise<Ownership[]> {
    const retired = wallets.filter(({ isRetired }) => isRetired).map(({ payTo }) => payTo)
    const busy = retired.length > 0 ? await findBusy(db, retired) : new Set()
    return wallets
      .filter(({ isRetired, payTo }) => !isRetired || busy.has(payTo))
      .map(({ mode, family, payTo }) => walletOwnership(mode, family, payTo))
  }

  return {
    async *pages() {
      yield await readSettlers()
      let after: string | null = ''
      while (after !== null) {
        const page: string = after
        yield await filterUsed(await listRecords(db, page, walletsPerPage))
        after = await findPageEnd(db, page, walletsPerPage)
      }
    },
    async find(some) {
      const addresses = some.filter(({ kind }) => kind === 'wallet').map(({ address }) => address)
      const wallets = addresses.length > 0 ? await filterUsed(await findRecords(db, addresses)) : []
      const used = new Set([...wallets, ...(await readSettlers())].map(keyOf))
      return some.filter((each) => used.has(keyOf(each)))
    },
    async writeElsewhere(some, isElsewhere) {
      const of = (wanted: Ownership['kind']) => some.filter(({ kind }) => kind === wanted)
      const [wallets, settlers] = [of('wallet'), of('settler')]
      if (wallets.length > 0) await writeElsewhere(db, wallets, isElsewhere)
      if (settlers.length > 0) await writeSettlersElsewhere(db, settlers, isElsewhere)
    },
    async writeReleased(some) {
      const wallets = some.filter(({ kind }) => kind === 'wallet')
      if (wallets.length > 0) await writeReleased(db, wallets)
    },
  }
}

/** A wallet as a chain knows it, for all stores of this cell that have registered it. */
type WalletRecord = {
  readonly mode: Mode
  readonly family: Family
  readonly payTo: string
  /** All of its stores have retired it. */
  readonly isRetired: boolean
}

/** SQL: records of wallets that the cell may own, with the mode of their stores. */
const records = (condition: string) => `select s.mode, w.family, w.pay_to as "payTo",
    bool_and(w.retired_at is not null) as "isRetired"
  from wallets w join stores s on s.id = w.store_id
  where ${condition} and (not w.unowned or w.registration > 0)
  group by s.mode, w.family, w.pay_to order by w.pay_to`

/** The wallets after an address, in the order of their addresses. */
async function listRecords(db: Database, after: string, limit: number): Promise<WalletRecord[]> {
  return await db.query<WalletRecord>(
    records(
      'w.pay_to in (select distinct n.pay_to from wallets n where n.pay_to > $1 order by n.pay_to limit $2)',
    ),
    [after, limit],
  )
}

/** The last address of the page, whether or not this cell may own it; null if the page is empty. */
async function findPageEnd(db: Database, after: string, limit: number): Promise<string | null> {
  const [row] = await db.query<{ last: string | null }>(
    'select max(pay_to) as last from (select distinct pay_to from wallets where pay_to > $1 order by pay_to limit $2) p',
    [after, limit],
  )
  return row?.last ?? null
}

async function findRecords(db: Database, payTo: readonly string[]): Promise<WalletRecord[]> {
  return await db.query<WalletRecord>(records('w.pay_to = any ($1)'), [payTo])
}

/** SQL: the oldest checkout of wallet `x`’s store with a status. */
const oldest = (status: string) => `(select c.created_at from checkouts c
  where c.store_id = x.store_id and c.status = '${status}' order by c.id limit 1)`

/**
 * Finds the retired wallets at which something may still happen: an owner may undo the change, a checkout that may name
 * the wallet is open, or money to or from it is in flight, not final, or expected. Each part reads an index of
 * unfinished work once, however many wallets there are. An hour is added because the clock of the process that wrote a
 * checkout may have been ahead.
 */
export async function findBusy(db: Database, payTo: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ payTo: string }>(
    `select x.pay_to as "payTo" from wallets x where x.pay_to = any ($1)
       and x.retired_at > clock() - interval '${undoHours} hours'
     union select x.pay_to from wallets x where x.pay_to = any ($1)
       and least(${oldest('OPEN')}, ${oldest('PROCESSING')}) < x.retired_at + interval '1 hour'
     union select unnest(array[a.pay_to, a.payer]) from authorizations a
       where a.state in ('claimed', 'sent') and not a.is_credited and (a.pay_to = any ($1) or a.payer = any ($1))
     union select unnest(array[a.pay_to, a.payer]) from authorizations a
       where a.state = 'prepared' and (a.pay_to = any ($1) or a.payer = any ($1))
     union select unnest(array[c.pay_to, c.payer]) from credits c
       where c.orphaned_at is null and c.finalized_at is null and (c.pay_to = any ($1) or c.payer = any ($1))
     union select c.pay_to from credits c
       where c.orphaned_at is not null and c.reversed_at is null and c.nonce is null and c.pay_to = any ($1)
     union select r.pay_to from reserved_amounts r
       where r.freed_at is null and r.reference is null and r.pay_to = any ($1)
     union select r.pay_to from reserved_amounts r
       where r.freed_at is null and r.reference is not null and r.pay_to = any ($1)
     union select f.wallet from wallets x join refunds f on f.store_id = x.store_id and f.wallet = x.pay_to
       where x.pay_to = any ($1) and (f.is_watched or f.status in ('REQUESTED', 'SIGNED', 'SENT'))`,
    [payTo],
  )
  return new Set(rows.map((row) => row.payTo))
}

/** How busy this cell is. */
export async function readLoad(db: Database): Promise<{ stores: number; paymentsPerHour: number }> {
  const [row] = await db.query<{ stores: number; paymentsPerHour: number }>(
    `select (select count(*) from stores)::integer as stores,
       (select coalesce(sum((t.value->>'payments')::bigint), 0) from stores s
        join rollup_quarters q on q.store_id = s.id and q.starts_at > clock() - interval '1 hour'
        cross join jsonb_each(q.figures->'taken') t)::integer as "paymentsPerHour"`,
  )
  return row ?? { stores: 0, paymentsPerHour: 0 }
}
