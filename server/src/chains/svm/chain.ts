import type { Node } from '../../config.ts'
import type { SolanaNetwork } from '../../networks.ts'
import { openRpc, type Rpc, RpcAnswerError, type RpcOutcome, RpcUnavailableError, unwrap } from '../rpc.ts'
import { decodeTransaction, encodeTransaction, type SvmTransaction } from './message.ts'
import { findTokenAccount, tokenProgram } from './transfer.ts'

/** One Solana cluster and its nodes. */
export type SvmChain = { readonly network: SolanaNetwork; readonly rpc: Rpc }

export function openSvmChain(network: SolanaNetwork, nodes: readonly Node[], now: () => Date): SvmChain {
  // CAIP-2 names a cluster by the beginning of its genesis hash.
  const genesis = network.caip2.slice('solana:'.length)
  const identity = {
    name: genesis,
    method: 'getGenesisHash',
    isOurs: (answer: unknown) => typeof answer === 'string' && answer.startsWith(genesis),
  }
  return { network, rpc: openRpc(nodes, identity, now) }
}

/** Checks the tokens against networks.ts. Returns what differs and what to do about it. */
export async function checkSvmChain({ network, rpc }: SvmChain): Promise<{ says: string; fix: string }[]> {
  const differences: { says: string; fix: string }[] = []
  for (const { symbol, address, decimals } of network.assets) {
    const { value } = await rpc.call<{ value: RawAccount | null }>('getAccountInfo', [
      address,
      { encoding: 'base64', commitment: 'confirmed' },
    ])
    // A mint is 82 bytes; its decimals are the 45th.
    const data = Buffer.from(value?.data[0] ?? '', 'base64')
    if (value?.owner !== tokenProgram || data.length !== 82 || data[44] !== decimals)
      differences.push({
        says: `${symbol} at ${address} on ${network.name} is not a token with ${decimals} decimals.`,
        fix: `Use nodes of the real ${network.name}.`,
      })
  }
  return differences
}

type RawAccount = { readonly owner: string; readonly data: readonly [string, string] }

export type SvmHeads = {
  /** Of the newest confirmed block. */
  readonly slot: number
  readonly time: Date
  readonly finalizedSlot: number
  /** Number of blocks up to the finalized one: the life of a blockhash is counted in these. */
  readonly finalizedHeight: number
}

type EpochInfo = { readonly absoluteSlot: number; readonly blockHeight: number }

/** The chain's heads; null while the newest block's time is not known. */
export async function readSvmHeads({ rpc }: SvmChain): Promise<SvmHeads | null> {
  const infos = await rpc.batch(
    ['confirmed', 'finalized'].map((commitment) => ({ method: 'getEpochInfo', params: [{ commitment }] })),
  )
  const [head, final] = infos.map((info) => unwrap<EpochInfo>(info))
  if (!head || !final) return null
  const seconds = await rpc.call<number | null>('getBlockTime', [head.absoluteSlot]).catch((error) => {
    // This node may be behind the one that was queried before, and not have the block yet.
    if (!(error instanceof RpcAnswerError)) throw error
    return null
  })
  if (seconds === null) return null
  return {
    slot: head.absoluteSlot,
    time: new Date(seconds * 1_000),
    finalizedSlot: final.absoluteSlot,
    finalizedHeight: final.blockHeight,
  }
}

/** What a node says about a transaction. */
export type Status = {
  readonly slot: number
  readonly isFailed: boolean
  readonly commitment: 'processed' | 'confirmed' | 'finalized'
}

type RawStatus = {
  readonly slot: number
  readonly err: unknown
  readonly confirmationStatus: Status['commitment'] | null
} | null

/** Nodes refuse more. */
const statusesPerCall = 256

export function statusCalls(hashes: readonly string[]) {
  const calls = []
  for (let i = 0; i < hashes.length; i += statusesPerCall)
    calls.push({
      method: 'getSignatureStatuses',
      params: [hashes.slice(i, i + statusesPerCall), { searchTransactionHistory: true }],
    })
  return calls
}

/** In the order of the hashes that were requested; null if the node does not know the transaction. */
export function readStatuses(outcomes: readonly RpcOutcome[]): (Status | null)[] {
  return outcomes.flatMap((outcome) =>
    unwrap<{ value: RawStatus[] }>(outcome).value.map((raw) =>
      raw === null
        ? null
        : { slot: raw.slot, isFailed: raw.err !== null, commitment: raw.confirmationStatus ?? 'finalized' },
    ),
  )
}

/** A transaction in a confirmed block, and what it did to token accounts. */
export type Landed = {
  readonly slot: number
  readonly time: Date
  readonly isFailed: boolean
  readonly transaction: SvmTransaction
  /** How many units an account gained; negative if it lost some. */
  gainOf(account: string): bigint
}

type RawBalance = { readonly accountIndex: number; readonly uiTokenAmount: { readonly amount: string } }
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

/** In the order of the hashes; null for a transaction that is not confirmed or not complete yet. */
export async function readLanded({ rpc }: SvmChain, hashes: readonly string[]): Promise<(Landed | null)[]> {
  const settings = { encoding: 'base64', commitment: 'confirmed', maxSupportedTransactionVersion: 0 }
  const outcomes = await rpc.batch(
    hashes.map((hash) => ({ method: 'getTransaction', params: [hash, settings] })),
  )
  return outcomes.map((outcome) => {
    // A transaction that a node cannot return (of an unknown version, say) must not hide the others. It is requested
    // again.
    if ('error' in outcome) return null
    const raw = unwrap<RawLanded>(outcome)
    const transaction = raw && decodeTransaction(Buffer.from(raw.transaction[0], 'base64'))
    if (!raw?.meta || raw.blockTime === null || !transaction) return null
    const { preTokenBalances, postTokenBalances, loadedAddresses } = raw.meta
    // Balances number accounts as the runtime does: those from lookup tables after those of the message.
    const accounts: readonly string[] = [
      ...transaction.accounts,
      ...(loadedAddresses?.writable ?? []),
      ...(loadedAddresses?.readonly ?? []),
    ]
    const unitsOf = (balances: readonly RawBalance[], index: number) =>
      BigInt(balances.find(({ accountIndex }) => accountIndex === index)?.uiTokenAmount.amount ?? '0')
    return {
      slot: raw.slot,
      time: new Date(raw.blockTime * 1_000),
      isFailed: raw.meta.err !== null,
      transaction,
      gainOf(account) {
        const index = accounts.indexOf(account)
        return unitsOf(postTokenBalances, index) - unitsOf(preTokenBalances, index)
      },
    }
  })
}

/** What a node says would happen to a transaction now. */
export type SvmSimulated = {
  readonly isGood: boolean
  /** As the node spells it. */
  readonly err: unknown
  /** Units in the paying account; null if it does not exist. */
  readonly balance: bigint | null
  readonly slot: number
  /** No blockhash that is valid now is valid in a block above this height. */
  readonly lastValidHeight: bigint
}

/**
 * Simulates transactions that lack a settler's signature, in one request. Each is simulated by itself: nodes do not
 * simulate one on top of another.
 */
export async function simulateSvm(
  { rpc }: SvmChain,
  asked: readonly { readonly transaction: SvmTransaction; readonly source: string }[],
): Promise<SvmSimulated[]> {
  const settings = { encoding: 'base64', commitment: 'processed' }
  const outcomes = await rpc.batch([
    ...asked.flatMap(({ transaction, source }) => [
      {
        method: 'simulateTransaction',
        params: [
          Buffer.from(encodeTransaction(transaction)).toString('base64'),
          { ...settings, sigVerify: false },
        ],
      },
      { method: 'getAccountInfo', params: [source, settings] },
    ]),
    // Last, so that no blockhash that was valid above is newer than this one.
    { method: 'getLatestBlockhash', params: [{ commitment: 'processed' }] },
  ])
  const latest = unwrap<{ context: { slot: number }; value: { lastValidBlockHeight: number } }>(
    outcomes.at(-1),
  )
  return asked.map((_, i) => {
    const { context, value } = unwrap<{ context: { slot: number }; value: { err: unknown } }>(outcomes[i * 2])
    const account = unwrap<{ value: RawAccount | null }>(outcomes[i * 2 + 1]).value
    if (isOurFault(value.err)) throw new RpcUnavailableError('A settler cannot pay the transaction fee.')
    return {
      isGood: value.err === null,
      err: value.err,
      balance: account && readUnits(account),
      slot: context.slot,
      // Behind a load balancer, the newest blockhash may come from another node. A block takes at least one slot.
      lastValidHeight: BigInt(
        latest.value.lastValidBlockHeight + Math.max(0, context.slot - latest.context.slot),
      ),
    }
  })
}

/**
 * What a new payment needs to know: the newest blockhash, its last valid height, and the units in the paying account.
 */
export async function readForPayment({ rpc }: SvmChain, source: string) {
  const [latest, account] = await rpc.batch([
    { method: 'getLatestBlockhash', params: [{ commitment: 'confirmed' }] },
    { method: 'getAccountInfo', params: [source, { encoding: 'base64', commitment: 'confirmed' }] },
  ])
  const { value } = unwrap<{ value: { blockhash: string; lastValidBlockHeight: number } }>(latest)
  const found = unwrap<{ value: RawAccount | null }>(account).value
  return {
    blockhash: value.blockhash,
    lastValidBlockHeight: BigInt(value.lastValidBlockHeight),
    units: found && readUnits(found),
  }
}

/**
 * The settler pays the fee, so it is not the payer's fault if it cannot. Account 0 is the settler. If another account
 * would be left without its rent, that is the payer's doing and must not stop the other payments in the request.
 */
function isOurFault(err: unknown): boolean {
  if (err === 'AccountNotFound' || err === 'InsufficientFundsForFee') return true
  if (typeof err !== 'object' || err === null || !('InsufficientFundsForRent' in err)) return false
  const { account_index: account } = err.InsufficientFundsForRent as { account_index?: unknown }
  return account === 0
}

/** A token account's units follow its mint and its owner, 32 bytes each. */
function readUnits({ owner, data }: RawAccount): bigint | null {
  const bytes = Buffer.from(data[0], 'base64')
  return owner === tokenProgram && bytes.length === 165 ? bytes.readBigUInt64LE(64) : null
}

/** Which of these wallets have an account for the token that can be paid to. */
export async function findReady(
  { rpc }: SvmChain,
  owners: readonly string[],
  mint: string,
): Promise<boolean[]> {
  const accounts = await Promise.all(owners.map((owner) => findTokenAccount(owner, mint)))
  const { value } = await rpc.call<{ value: (RawAccount | null)[] }>('getMultipleAccounts', [
    accounts,
    { encoding: 'base64', commitment: 'confirmed' },
  ])
  // An account's state is its 109th byte: 1 is initialized, 2 is frozen.
  return owners.map((_, i) => {
    const account = value[i]
    if (!account || readUnits(account) === null) return false
    return Buffer.from(account.data[0], 'base64')[108] === 1
  })
}
