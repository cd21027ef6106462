import type { Database } from '../../database/db.ts'

/** Transactions that somebody wants looked at again, whoever they paid. */
type LookUpOutcome = 'looking' | 'found' | 'not_found'

/** While a node does not answer. */
const againSeconds = 30
/** After this time it is given up. Whoever still wants it asks again. */
const patienceMinutes = 30

/** Asks for a look at a transaction, or for another one after it was not found. */
export async function askToLookUp(db: Database, network: string, hash: string): Promise<void> {
  await db.query(
    `insert into lookups as l (network, transaction_hash, asked_at, outcome) values ($1, $2, clock(), 'looking')
     on conflict (network, transaction_hash) do update set asked_at = clock(), looked_at = null, outcome = 'looking'
       where l.outcome <> 'looking'`,
    [network, hash],
  )
}

type LookUp = { readonly hash: string; readonly isOld: boolean }

/** Those that are due, the longest waiting first. */
export async function listLookUps(db: Database, network: string, limit: number): Promise<LookUp[]> {
  return await db.query<LookUp>(
    `update lookups l set looked_at = clock()
     from (select network, transaction_hash from lookups where network = $1 and outcome = 'looking'
         and (looked_at is null or looked_at <= clock() - make_interval(secs => $2))
       order by asked_at limit $3 for update skip locked) due
     where l.network = due.network and l.transaction_hash = due.transaction_hash
     returning l.transaction_hash as hash, l.asked_at <= clock() - make_interval(mins => $4) as "isOld"`,
    [network, againSeconds, limit, patienceMinutes],
  )
}

/** Records what came of it: found if the books have the transaction now. */
export async function endLookUp(
  db: Database,
  network: string,
  hash: string,
  isGivenUp: boolean,
): Promise<void> {
  await db.query(
    `update lookups l set outcome = case when exists (select 1 from credits k where k.network = $1
           and k.transaction_hash = $2 and k.orphaned_at is null) then 'found'
         when $3 then 'not_found' else l.outcome end
     where network = $1 and transaction_hash = $2`,
    [network, hash, isGivenUp],
  )
}

export async function readLookUp(db: Database, network: string, hash: string): Promise<LookUpOutcome | null> {
  const [row] = await db.query<{ outcome: LookUpOutcome }>(
    'select outcome from lookups where network = $1 and transaction_hash = $2',
    [network, hash],
  )
  return row?.outcome ?? null
}
