import { type Agreement, agree } from '../agree.ts'
import type { RpcCall, RpcOutcome } from '../rpc.ts'
import type { SvmChain } from './chain.ts'
import { decodeAnyTransaction, type SvmTransaction, toBase58 } from './message.ts'
import { tokenProgram } from './transfer.ts'
import { readAnswer, whole } from './witnesses.ts'

/** A transaction in a confirmed block, and what it did to token accounts. */
export type Landed = {
  readonly slot: number
  readonly time: Date
  readonly isFailed: boolean
  readonly transaction: SvmTransaction
  /** Whether the transaction names an account, even if only as a reference. */
  names(account: string): boolean
  /** How many units an account gained; negative if it lost some. */
  gainOf(account: string): bigint
  /** How many it had before and after; 0 if the transaction says nothing about it. */
  unitsOf(account: string): { readonly before: bigint; readonly after: bigint }
  /**
   * The wallet that owns a token account, if the node reports it. That is one node's word, so derive the account from
   * the wallet to check it.
   */
  ownerOf(account: string): string | null
}

type RawBalance = {
  readonly accountIndex: number
  readonly uiTokenAmount: { readonly amount: string }
  readonly owner?: string
}
type RawLanded = {
  readonly slot: number
  readonly blockTime: number | null
  readonly transaction: readonly [string, string]
  readonly meta: {
    readonly err: unknown
    readonly preTokenBalances: readonly RawBalance[]
    readonly postTokenBalances: readonly RawBalance[]
    readonly loadedAddresses?: {
      readonly writable: readonly string[]
      readonly readonly: readonly string[]
    } | null
  } | null
} | null

/**
 * The payer: the owner who ordered the transfer to the account, or the fee payer if another program moved the money.
 */
export function findPayer({ transaction }: Landed, account: string): string {
  for (const { program, accounts, data } of transaction.instructions) {
    if (program !== tokenProgram) continue
    // TransferChecked names the mint between the two accounts, Transfer does not.
    if (data[0] === 12 && accounts[2] === account && accounts[3]) return accounts[3]
    if (data[0] === 3 && accounts[1] === account && accounts[2]) return accounts[2]
  }
  return transaction.accounts[0] ?? account
}

/** How we ask for a transaction. */
export function landedCall(hash: string): RpcCall {
  const settings = { encoding: 'base64', commitment: 'confirmed', maxSupportedTransactionVersion: versionMax }
  return { method: 'getTransaction', params: [hash, settings] }
}

/** The newest version of transactions that we can read. */
const versionMax = 1
/** The code with which nodes refuse to return a transaction of a newer version. */
const versionRefused = -32015
const readPerRequest = 50

/** `isUnreadable`: a provider has it in a block, but we can't read it. */
export type Reading = Agreement<Landed> & { readonly isUnreadable: boolean }

/**
 * For each hash, what enough providers report alike: slot, time, error, bytes and balances. There is no fact for a
 * transaction that too few of them have in a confirmed block, or that can't be read (because its version is unknown,
 * for example).
 */
export async function readLanded({ rpc, network }: SvmChain, hashes: readonly string[]): Promise<Reading[]> {
  const agreed: Reading[] = []
  for (let start = 0; start < hashes.length; start += readPerRequest) {
    const some = hashes.slice(start, start + readPerRequest)
    const witnesses = await rpc.askAll(some.map(landedCall))
    for (const [i, hash] of some.entries()) {
      const told = witnesses.flatMap(({ provider, outcomes }) => {
        const fact = toLanded(outcomes[i], hash)
        return fact ? { provider, fact } : []
      })
      const { fact, ...rest } = agree(told, ({ key }) => key, network.witnessesMin)
      const isUnreadable = !fact && witnesses.some(({ outcomes }) => cannotRead(outcomes[i], hash))
      agreed.push({ fact: fact?.landed ?? null, isUnreadable, ...rest })
    }
  }
  return agreed
}

/** Whether a provider has it in a block, and we cannot read it. */
export function cannotRead(outcome: RpcOutcome | undefined, hash: string): boolean {
  if (!outcome) return false
  if ('error' in outcome) return outcome.error.code === versionRefused
  // A node that doesn't know the block's time yet will know it soon.
  const isComplete = readAnswer(outcome, (raw: RawLanded) => raw !== null && raw.blockTime !== null)
  return isComplete === true && toLanded(outcome, hash) === null
}

/** With a key that is equal for two providers only if everything that we use is equal. */
export function toLanded(
  outcome: RpcOutcome | undefined,
  hash: string,
): { landed: Landed; key: string } | null {
  return readAnswer(outcome, (raw: RawLanded) => {
    const transaction = raw && decodeAnyTransaction(Buffer.from(raw.transaction[0], 'base64'))
    const [signature] = transaction?.signatures ?? []
    // The hash is the first signature: other bytes are another transaction.
    if (!raw?.meta || raw.blockTime === null || !transaction || !signature || toBase58(signature) !== hash)
      return null
    const { preTokenBalances, postTokenBalances, loadedAddresses } = raw.meta
    // The runtime's order: accounts from lookup tables come after those of the message.
    const accounts: readonly string[] = [
      ...transaction.accounts,
      ...(loadedAddresses?.writable ?? []),
      ...(loadedAddresses?.readonly ?? []),
    ]
    const unitsOf = (balances: readonly RawBalance[], index: number) =>
      BigInt(balances.find(({ accountIndex }) => accountIndex === index)?.uiTokenAmount.amount ?? '0')
    const units = new Map(
      accounts.map((account, i) => [
        account,
        { before: unitsOf(preTokenBalances, i), after: unitsOf(postTokenBalances, i) },
      ]),
    )
    const none = { before: 0n, after: 0n }
    const gains = [...units].map(([account, { before, after }]) => `${account} ${before} ${after}`)
    const slot = whole(raw.slot)
    const seconds = whole(raw.blockTime)
    const isFailed = (raw.meta.err ?? null) !== null
    const key = [slot, seconds, isFailed, raw.transaction[0], ...gains].join(' ')
    const landed = {
      slot,
      time: new Date(seconds * 1_000),
      isFailed,
      transaction,
      names: (account: string) => units.has(account),
      gainOf(account: string) {
        const { before, after } = units.get(account) ?? none
        return after - before
      },
      unitsOf: (account: string) => units.get(account) ?? none,
      ownerOf: (account: string) =>
        postTokenBalances.find(({ accountIndex }) => accounts[accountIndex] === account)?.owner ?? null,
    }
    return { landed, key }
  })
}
