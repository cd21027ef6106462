import type { Node } from '../../config/parse.ts'
import type { SolanaNetwork } from '../../networks.ts'
import { reachedBy } from '../agree.ts'
import { openRpc } from '../open-rpc.ts'
import { type NoteOutcome, type Rpc, type RpcCall, RpcUnavailableError } from '../rpc.ts'
import { encodeTransaction, type SvmTransaction } from './message.ts'
import { findTokenAccount, tokenProgram } from './transfer.ts'
import { findTogether, readAnswer, whole } from './witnesses.ts'

/** One Solana cluster and its nodes. */
export type SvmChain = { readonly network: SolanaNetwork; readonly rpc: Rpc }

export function openSvmChain(
  network: SolanaNetwork,
  nodes: readonly Node[],
  now: () => Date,
  noteOutcome?: NoteOutcome,
): SvmChain {
  // CAIP-2 names a cluster by the beginning of its genesis hash.
  const genesis = network.caip2.slice('solana:'.length)
  const identity = {
    name: genesis,
    method: 'getGenesisHash',
    isOurs: (answer: unknown) => typeof answer === 'string' && answer.startsWith(genesis),
    tells,
  }
  return { network, rpc: openRpc(nodes, identity, now, noteOutcome) }
}

/**
 * Answers to these methods show that the node is on our chain. A transaction names a block of its own chain, so no
 * other chain has it or runs it. A node on another chain can only answer that it doesn't know it, which counts for
 * nothing unless the same request contains a call that checks the chain.
 */
const ofTransactions = new Set([
  'sendTransaction',
  'getSignatureStatuses',
  'getTransaction',
  'getSignaturesForAddress',
])

function tells({ method }: RpcCall): boolean {
  return ofTransactions.has(method)
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

/** What a provider says would happen to a transaction now. */
export type SvmSimulated = {
  readonly provider: string
  readonly isGood: boolean
  /** As the node spells it. */
  readonly err: unknown
  /** It would fail because the settler can't pay the fee. */
  readonly isOurFault: boolean
  /** Units in the paying account; null if it does not exist. */
  readonly balance: bigint | null
  readonly slot: number
}

export type SvmSimulation = {
  /** One per provider that could simulate it. */
  readonly told: readonly SvmSimulated[]
  /**
   * No blockhash that is valid now stays valid above this block height, the highest that any provider reports. Null if
   * too few report one, or if they are too far apart.
   */
  readonly lastValidHeight: bigint | null
}

type Contextual<Value> = { readonly context: { readonly slot: number }; readonly value: Value }

/**
 * Has every provider simulate transactions that lack a settler's signature, in one request each. Each is simulated by
 * itself: nodes do not simulate one on top of another.
 */
export async function simulateSvm(
  { rpc, network }: SvmChain,
  asked: readonly { readonly transaction: SvmTransaction; readonly source: string }[],
): Promise<SvmSimulation[]> {
  const settings = { encoding: 'base64', commitment: 'processed' }
  const witnesses = await rpc.askAll([
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
    // This call is last, so that no blockhash that was valid in the simulations is newer than this one.
    { method: 'getLatestBlockhash', params: [{ commitment: 'processed' }] },
  ])
  const simulated = witnesses.map(({ provider, outcomes }) =>
    asked.map((_, i): SvmSimulated | null => {
      const account = readAnswer(outcomes[i * 2 + 1], ({ value }: Contextual<RawAccount | null>) => ({
        units: value && readUnits(value),
      }))
      return readAnswer(outcomes[i * 2], ({ context, value: { err } }: Contextual<{ err: unknown }>) =>
        account === null
          ? null
          : {
              provider,
              isGood: err === null,
              err,
              isOurFault: isOurFault(err),
              balance: account.units,
              slot: whole(context.slot),
            },
      )
    }),
  )
  const heights = witnesses.flatMap(({ outcomes }, place) => {
    const newest = Math.max(...(simulated[place] ?? []).map((one) => one?.slot ?? 0))
    const height = readAnswer(outcomes.at(-1), ({ context, value }: Contextual<Lifetime>) => {
      // Behind a load balancer, the newest blockhash may come from another node. A block takes at least one slot.
      return whole(value.lastValidBlockHeight + Math.max(0, newest - whole(context.slot)))
    })
    return height ?? []
  })
  const [highest] = findTogether(heights, (height) => height, network.witnessesMin) ?? []
  const lastValidHeight = highest === undefined ? null : BigInt(highest)
  return asked.map((_, i) => ({ told: simulated.flatMap((one) => one[i] ?? []), lastValidHeight }))
}

type Lifetime = { readonly blockhash: string; readonly lastValidBlockHeight: number }

/** What a new payment needs to know: a recent blockhash, and the most units that any provider sees in its account. */
export async function readForPayment({ rpc, network }: SvmChain, source: string) {
  const witnesses = await rpc.askAll([
    { method: 'getLatestBlockhash', params: [{ commitment: 'confirmed' }] },
    { method: 'getAccountInfo', params: [source, { encoding: 'base64', commitment: 'confirmed' }] },
  ])
  const told = witnesses.flatMap(({ outcomes: [latest, account] }) => {
    const lifetime = readAnswer(latest, ({ value }: Contextual<Lifetime>) => ({
      blockhash: value.blockhash,
      height: whole(value.lastValidBlockHeight),
    }))
    const units = readAnswer(account, ({ value }: Contextual<RawAccount | null>) => value && readUnits(value))
    return lifetime ? { ...lifetime, units: units ?? 0n } : []
  })
  const together = findTogether(told, ({ height }) => height, network.witnessesMin)
  // The newest height that enough providers have reached.
  const chosen = together?.[network.witnessesMin - 1]
  if (!chosen) throw new RpcUnavailableError(`Too few nodes agree on the height of ${network.name}.`)
  return {
    blockhash: chosen.blockhash,
    lastValidBlockHeight: BigInt(chosen.height),
    units: told.reduce((most, { units }) => (units > most ? units : most), 0n),
  }
}

/**
 * The settler pays the fee, so it is not the payer's fault if it cannot. Account 0 is the settler. If the payment would
 * leave another account without its rent, that is the payer's fault and must not stop the other payments in the
 * request.
 */
function isOurFault(err: unknown): boolean {
  if (err === 'AccountNotFound' || err === 'InsufficientFundsForFee') return true
  if (typeof err !== 'object' || err === null || !('InsufficientFundsForRent' in err)) return false
  const { account_index: account } = err.InsufficientFundsForRent as { account_index?: unknown }
  return account === 0
}

/** In a token account, the units come after the mint and the owner, 32 bytes each. */
function readUnits({ owner, data }: RawAccount): bigint | null {
  const bytes = Buffer.from(data[0], 'base64')
  return owner === tokenProgram && bytes.length === 165 ? bytes.readBigUInt64LE(64) : null
}

/**
 * Which of these wallets have a token account that can be paid to, according to any provider: one that is behind or
 * down must not disable a network for a store. Every payment is simulated later anyway.
 */
export async function findReady(
  { rpc }: SvmChain,
  owners: readonly string[],
  mint: string,
): Promise<boolean[]> {
  const accounts = await Promise.all(owners.map((owner) => findTokenAccount(owner, mint)))
  const settings = { encoding: 'base64', commitment: 'confirmed' }
  const witnesses = await rpc.askAll([{ method: 'getMultipleAccounts', params: [accounts, settings] }])
  const told = witnesses.flatMap(({ outcomes: [outcome] }) => {
    const ready = readAnswer(outcome, ({ value }: { value: (RawAccount | null)[] }) => value.map(isPayable))
    return ready ? [ready] : []
  })
  if (told.length === 0) throw new RpcUnavailableError('No node could look up token accounts.')
  return owners.map((_, i) => told.some((ready) => ready[i]))
}

/** An account's state is its 109th byte: 1 is initialized, 2 is frozen. */
function isPayable(account: RawAccount | null): boolean {
  return account !== null && readUnits(account) !== null && Buffer.from(account.data[0], 'base64')[108] === 1
}

/** A settler's lamports: the highest balance that enough providers reach. */
export async function readLamports({ rpc, network }: SvmChain, address: string): Promise<bigint> {
  const witnesses = await rpc.askAll([
    { method: 'getBalance', params: [address, { commitment: 'confirmed' }] },
  ])
  const told = witnesses.flatMap(
    ({ outcomes: [outcome] }) => readAnswer(outcome, ({ value }: Contextual<number>) => whole(value)) ?? [],
  )
  const lamports = reachedBy(told, Math.min(network.witnessesMin, told.length))
  if (lamports === null) throw new RpcUnavailableError('No node could look up a settler’s balance.')
  return BigInt(lamports)
}
