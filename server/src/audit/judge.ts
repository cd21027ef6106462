import type { History } from '../chains/history.ts'
import type { Context } from '../context.ts'
import { type Arrived, type Credited, compareTransfers, listArrived } from './finding.ts'
import * as rows from './rows.ts'

/** The books can hold as many false payments as a thief wrote; each costs a question. The others stay findings. */
const confirmedMax = 1_000

type Asked = {
  readonly wallets: readonly string[]
  /** Credits of these wallets, to be judged with all others of their transactions, whatever day those say. */
  readonly credits: readonly Credited[]
  /** What arrived at the wallets as far as the chain was read. */
  readonly arrived: readonly Arrived[]
  /** More transactions to judge again. */
  readonly again: readonly string[]
  /** Without it what arrived is not known, so what nobody was asked about is not judged. */
  readonly isRead: boolean
}

/** Where to look up transactions. */
export type Ledger<Of = { readonly caip2: string; readonly mode: string }> = {
  readonly network: Of
  readonly history: Pick<History, 'readTransaction'>
}

type Verdict = {
  /** Of those that arrived. */
  readonly missing: readonly Arrived[]
  readonly unfounded: readonly Credited[]
  /** The transactions that were looked at. */
  readonly transactions: readonly string[]
}

/**
 * Compares the books with the chain about the transactions that they name. Transactions that did not arrive on the day
 * that was read are looked up one by one: the books may say another day than the chain.
 */
export async function judge(
  ctx: Context,
  { network: { caip2 }, history }: Ledger,
  { wallets, credits, arrived, again, isRead }: Asked,
): Promise<Verdict> {
  const read = new Set(arrived.map(({ transaction }) => transaction))
  const named = [...new Set([...credits.map(({ transaction }) => transaction), ...again])]
  const others = named.filter((transaction) => !read.has(transaction))
  const looked = others.slice(0, confirmedMax)
  const found: Arrived[] = []
  for (const transaction of looked)
    found.push(...listArrived(await history.readTransaction(transaction, wallets), new Set(wallets)))
  const all = [...arrived, ...found]
  const transactions = [...read, ...(isRead ? others : looked)]
  const booked = await rows.listCreditsOf(ctx.db, caip2, wallets, transactions)
  const verdict = compareTransfers(all, booked, await rows.listKept(ctx.db, caip2, all))
  return {
    missing: verdict.missing.filter((one) => read.has(one.transaction)),
    unfounded: verdict.unfounded,
    transactions,
  }
}
