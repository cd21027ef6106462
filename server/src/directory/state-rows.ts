import assert from 'node:assert/strict'
import type { Database, Transaction } from '../database/db.ts'

/** SQL for `directory_state`, in the cell's own database. */
export type State = {
  /** Null: this deployment has adopted no directory. */
  readonly epoch: string | null
  /** Tells this database from others with the same tag. Not null if `epoch` isn't. */
  readonly identity: string | null
  readonly number: string
  readonly reports: string
  readonly takesStores: boolean
}

const columns = 'epoch, identity, number, reports, takes_stores as "takesStores"'
const none: State = { epoch: null, identity: null, number: '0', reports: '0', takesStores: true }

export async function readState(db: Database): Promise<State> {
  const [row] = await db.query<State>(`select ${columns} from directory_state`)
  return row ?? none
}

/** Gives this database an identity, unless it has one. Returns the one that it has. */
export async function writeIdentity(db: Database, identity: string): Promise<string> {
  const [row] = await db.query<{ identity: string }>(
    'update directory_state set identity = coalesce(identity, $1) returning identity',
    [identity],
  )
  assert(row, 'the migration inserts the only row')
  return row.identity
}

/** Keeps others from raising the fence until this transaction ends. */
export async function holdState(tx: Transaction): Promise<State> {
  const [row] = await tx.query<State>(`select ${columns} from directory_state for share`)
  return row ?? none
}

/** Raises the fence: waits for transactions that hold it, and refuses those that have read it and do not hold it yet. */
export async function raiseFence(db: Database): Promise<void> {
  await db.query('update directory_state set number = number + 1')
}

/** The same, and moves this cell to another epoch of the directory, or out of it. */
export async function writeEpoch(db: Database, epoch: string | null): Promise<void> {
  await db.query('update directory_state set number = number + 1, epoch = $1', [epoch])
}

/** Remembers what the directory answered, unless another process has remembered a later answer since `before`. */
export async function writeReported(
  db: Database,
  before: State,
  { reports, takesStores }: Pick<State, 'reports' | 'takesStores'>,
): Promise<void> {
  await db.query('update directory_state set reports = $1, takes_stores = $2 where reports = $3', [
    reports,
    takesStores,
    before.reports,
  ])
}
