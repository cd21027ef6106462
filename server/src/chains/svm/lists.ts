import { isMost } from '../agree.ts'
import { RpcUnavailableError } from '../rpc.ts'
import type { SvmChain } from './chain.ts'
import { readAnswer } from './witnesses.ts'

/** Finds the transactions that name an account. Nodes list the newest first, this many per request. */
const listedPerRequest = 1_000

type Listed = { readonly signature: string; readonly blockTime: number | null }

/**
 * For each account, the newest successful transactions that any provider lists for it. The list says only where to
 * look: `readLanded` asks what they did. An honest buyer sends one transaction per reference.
 */
export async function listNaming({ rpc }: SvmChain, accounts: readonly string[]): Promise<string[][]> {
  const settings = { commitment: 'confirmed', limit: listedPerRequest }
  const witnesses = await rpc.askAll(
    accounts.map((account) => ({ method: 'getSignaturesForAddress', params: [account, settings] })),
  )
  const read = (list: readonly { signature: string; err?: unknown }[]) =>
    list.filter(({ err }) => (err ?? null) === null).map(({ signature }) => String(signature))
  return accounts.map((_, i) => witnesses.flatMap(({ outcomes }) => readAnswer(outcomes[i], read) ?? []))
}

/**
 * The transactions that name an account since a time, from the lists of all providers, without those that all who tell
 * their time call later than `before`, and not many more than `max`. `isAgreed`: enough of them list the same.
 */
export async function listSent(
  { rpc, network: { witnessesMin } }: SvmChain,
  account: string,
  since: Date,
  {
    before = null,
    max = Number.POSITIVE_INFINITY,
  }: { readonly before?: Date | null; readonly max?: number } = {},
) {
  const hashes: string[] = []
  let isAgreed = true
  let cursor: string | undefined
  for (;;) {
    const settings = { limit: listedPerRequest, commitment: 'confirmed', ...(cursor && { before: cursor }) }
    const call = { method: 'getSignaturesForAddress', params: [account, settings] }
    // A transaction that is missing from the list counts as not sent, so each answer must show that its node is on our
    // chain.
    const lists = (await rpc.askAll([call], undefined, true)).flatMap(({ outcomes: [outcome] }) => {
      const list = readAnswer(outcome, (raw: Listed[]) => raw.map(toListed))
      return list ? [list] : []
    })
    if (lists.length < witnessesMin)
      throw new RpcUnavailableError('Too few nodes list the transactions of an account.')
    // If a node doesn't know a block's time, the block may be a late one.
    const isLate = ({ blockTime }: Listed) => blockTime === null || blockTime * 1_000 >= since.getTime()
    const late = lists.map((list) => list.filter(isLate))
    const isOver = ({ blockTime }: Listed) =>
      before === null || blockTime === null || blockTime * 1_000 < before.getTime()
    const over = new Set(late.flatMap((list) => list.filter(isOver)).map(({ signature }) => signature))
    const countListing = (hash: string) =>
      late.filter((list) => list.some(({ signature }) => signature === hash)).length
    for (const hash of new Set(late.flat().map(({ signature }) => signature))) {
      const having = countListing(hash)
      if (!over.has(hash)) continue
      if (isMost(having, lists.length, witnessesMin)) hashes.push(hash)
      else if (!isMost(lists.length - having, lists.length, witnessesMin)) isAgreed = false
    }
    const atEnd = lists.filter((list, i) => list.length < listedPerRequest || late[i]?.length !== list.length)
    if (isMost(atEnd.length, lists.length, witnessesMin) || hashes.length > max) return { hashes, isAgreed }
    // The oldest that enough of them list, so that all of those can continue from it.
    const next = lists.flat().findLast(({ signature }) => countListing(signature) >= witnessesMin)?.signature
    if (next === undefined || next === cursor) return { hashes, isAgreed: false }
    cursor = next
  }
}

function toListed({ signature, blockTime }: Listed): Listed {
  return { signature: String(signature), blockTime: blockTime ?? null }
}
