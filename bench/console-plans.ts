/** The statements that the console sends to PostgreSQL for a screen, each explained with its own parameters. */
import type { Database, Transaction } from '../server/src/database/db.ts'
import { nameStore } from '../server/src/database/scope.ts'

type Statement = { readonly text: string; readonly values: readonly unknown[] }
type Node = {
  readonly 'Node Type': string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly 'Index Name'?: string
  readonly Plans?: readonly Node[]
}

export type Cost = {
  /** Blocks that all statements touch together, and those of the most expensive one. */
  readonly buffers: number
  readonly buffersOfOne: number
  /** Rows that went through the largest sort. */
  readonly sorted: number
  readonly statements: number
  /** The most expensive statement, with its nodes. */
  readonly worst: string
}

export type Recorder = Database & { readonly sent: Statement[] }

/** Wraps the database and records its statements. */
export function openRecorder(db: Database): Recorder {
  const sent: Statement[] = []
  const note = (text: string, values: readonly unknown[] = []) => sent.push({ text, values })
  const recorded = (tx: Transaction): Transaction => ({
    ...tx,
    query: (text, values) => {
      note(text, values)
      return tx.query(text, values)
    },
  })
  return {
    ...db,
    sent,
    query: (text, values) => {
      note(text, values)
      return db.query(text, values)
    },
    transaction: (work) => db.transaction((tx) => work(recorded(tx))),
  }
}

/** Runs the reads among the statements again, as the console's role and in its store. */
export async function explain(db: Database, storeId: string, sent: readonly Statement[]): Promise<Cost> {
  let [buffers, sorted, statements] = [0, 0, 0]
  let worst = { buffers: -1, text: '' }
  for (const { text, values } of sent) {
    if (!/^\s*(select|with)\b/i.test(text) || /set_config|\b(insert into|update|delete from)\b/i.test(text))
      continue
    const [row] = await db.transaction(async (tx) => {
      await nameStore(tx, storeId)
      return await tx.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(
        `explain (analyze, buffers, format json) ${text}`,
        values,
      )
    })
    const plan = row?.['QUERY PLAN'][0].Plan
    if (!plan) throw new Error(`no plan for ${text}`)
    const nodes = flatten(plan)
    const own = touched(plan)
    buffers += own
    statements++
    for (const node of nodes)
      if (/Sort/.test(node['Node Type']))
        sorted = Math.max(
          sorted,
          ...(node.Plans ?? []).map((input) => input['Actual Rows'] * input['Actual Loops']),
        )
    const shape = nodes.map(
      (node) =>
        `${node['Node Type']} ${node['Index Name'] ?? ''} (${node['Actual Rows'] * node['Actual Loops']} rows, ${touched(node)})`,
    )
    if (own > worst.buffers) worst = { buffers: own, text: `${own} buffers: ${shape.join(', ')}` }
  }
  return { buffers, buffersOfOne: worst.buffers, sorted, statements, worst: worst.text }
}

function flatten(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}

function touched(node: Node): number {
  return node['Shared Hit Blocks'] + node['Shared Read Blocks']
}
