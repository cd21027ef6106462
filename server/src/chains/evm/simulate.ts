import { decodeErrorResult } from 'viem/utils'
import { openBatcher } from '../../database/batch.ts'
import { enoughOf, isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import { isNodeError, type ProviderAnswer, type RpcOutcome, RpcUnavailableError, unwrap } from '../rpc.ts'
import type { Chain } from './chain.ts'
import { type Authorization, authorizationStateCalldata, transferCalldata } from './eip3009.ts'
import { type Call, type CallResult, decodeAggregate, multicall, readManyParams } from './multicall.ts'
import { isRevert, isUnfunded, readRevert } from './refusals.ts'

/**
 * Asks nodes how the token would treat a transfer now.
 *
 * Anyone who sees a signature can send it, so nodes see one only in transactions that we have committed. An ordinary
 * wallet's signature was already checked here, so a node is only asked about nonce, balance, pause, blacklist and time.
 * A contract wallet's code has to run, so its transfer is simulated with the signature, as exactly the transaction that
 * would be sent, because the code can tell the gas, sender and price.
 *
 * One provider's good answer is enough to accept a payment, because the logs decide later. A refusal is shown to the
 * payer, so it needs `witnessesMin` providers that agree. So does a send, which costs us gas; but if too few answer and
 * none of them objects, it is sent: at worst that wastes the gas of one try.
 */
export type SignedTransfer = {
  readonly asset: string
  readonly authorization: Authorization
  readonly signature: Hex
  /** Whether the payer's address has code. */
  readonly isContract: boolean
}

export type Simulated = {
  readonly isGood: boolean
  readonly isNonceUsed: boolean
  readonly balance: bigint
  /** The token's own message, if it refused. */
  readonly revertReason: string
  /** Block height of the node that answered. */
  readonly blockNumber: number
}

/** A transfer, and the payer's other payments in flight: the balance must cover both. */
type Asked = SignedTransfer & { readonly inFlightUnits?: bigint; readonly headNumber?: number | null }
/**
 * The gas of a transaction that carries one contract wallet's payment. The wallet's code may burn all of it, so it is
 * less than three times what it costs to set up such a wallet. It is enough for a token's transfer and a wallet that
 * checks several signatures, or a passkey with the chain's own P-256 check.
 */
export const contractGas = 200_000n

/** A transaction as it would be sent. Without fees, the sender needs no money. */
type Send = {
  readonly to: string
  readonly data: Hex
  readonly gas: bigint
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
}

/** Keeps one eth_call below the request size that nodes accept. */
const transfersPerCall = 100
const callsInFlight = 4
/** Reads are made from this address, and no answer depends on it. */
const reader = '0x0000000000000000000000000000000000000001'

/** `headNumber` is the last block that the follower has read. */
export type SimulateTransfer = (
  transfer: SignedTransfer,
  inFlightUnits?: bigint,
  headNumber?: number | null,
) => Promise<Simulated>

/**
 * For `serve`: all waiting transfers are checked in one call. Throws if no node answers, or if the nodes contradict
 * each other about a refusal.
 */
export function openSimulate(chain: Chain, from: string): SimulateTransfer {
  const first = async (transfers: readonly Asked[]): Promise<Simulated[]> => {
    const outcomes = await chain.rpc.batch(callsFor(transfers, true))
    const checked = orNull(() => parse(transfers, outcomes))
    // One provider's word is not enough for a refusal or a used nonce, because the payer would be asked to sign again.
    // Nor is the word of providers that are behind our follower, because the nonce may be used in later blocks.
    const isAccepted = (one: Simulated | undefined, { headNumber }: Asked) =>
      one?.isGood === true && !one.isNonceUsed && one.blockNumber >= (headNumber ?? 0)
    const doubtful = transfers.filter((transfer, i) => !isAccepted(checked?.[i], transfer))
    const confirmed = await checkTransfers(chain, doubtful, true)
    return transfers.map((transfer, i) => {
      const place = doubtful.indexOf(transfer)
      return (place === -1 ? checked?.[i] : confirmed[place]) ?? contradiction()
    })
  }
  const joined = openBatcher<Asked, Simulated>({
    run: first,
    runAlone: async (transfer) => (await first([transfer]))[0] ?? contradiction(),
    itemsMax: transfersPerCall,
    inFlightMax: callsInFlight,
  })
  return async (transfer, inFlightUnits = 0n, headNumber = null) => {
    const asked = { ...transfer, inFlightUnits, headNumber }
    if (!transfer.isContract) return await joined(asked)
    const data = transferCalldata(transfer.authorization, transfer.signature)
    const send = { to: transfer.asset, data, gas: contractGas }
    return (await simulateSend(chain, from, asked, send)) ?? contradiction()
  }
}

function contradiction(): never {
  throw new RpcUnavailableError('Too few nodes agree about the payer’s account.')
}

/** Checks transfers of ordinary wallets. Null for one on which too few providers agree. */
export async function checkTransfers(
  chain: Chain,
  transfers: readonly Asked[],
  withPending = false,
): Promise<(Simulated | null)[]> {
  if (transfers.length === 0) return []
  const { witnessesMin } = chain.network
  // Each provider's answers are read again whenever another one answers.
  const parsed = new Map<ProviderAnswer, Simulated[] | null>()
  const parseOnce = (told: ProviderAnswer) => {
    if (!parsed.has(told))
      parsed.set(
        told,
        orNull(() => parse(transfers, told.outcomes)),
      )
    return parsed.get(told) ?? null
  }
  const agreed = (told: readonly ProviderAnswer[]) => {
    const answers = told.flatMap((one) => {
      const answer = parseOnce(one)
      return answer ? [answer] : []
    })
    return transfers.map((_, i) =>
      agree(
        answers.flatMap((answer) => answer[i] ?? []),
        witnessesMin,
      ),
    )
  }
  const enough = enoughOf(chain.rpc.providers, witnessesMin)
  const isEnough = (told: readonly ProviderAnswer[]) => told.length >= enough && !agreed(told).includes(null)
  return agreed(await chain.rpc.askAll(callsFor(transfers, withPending), isEnough))
}

/**
 * Simulates the transaction that would carry a contract wallet's transfer. Null if too few providers agree.
 */
export async function simulateSend(
  chain: Chain,
  from: string,
  transfer: Asked,
  { to, data, gas, maxFeePerGas, maxPriorityFeePerGas }: Send,
): Promise<Simulated | null> {
  const transaction = {
    ...{ from, to, data, gas: toQuantity(gas) },
    ...(maxFeePerGas !== undefined && { maxFeePerGas: toQuantity(maxFeePerGas) }),
    ...(maxPriorityFeePerGas !== undefined && { maxPriorityFeePerGas: toQuantity(maxPriorityFeePerGas) }),
  }
  const calls = [{ target: multicall, callData: getBlockNumber }, ...stateCalls(transfer)]
  const told = await chain.rpc.askAll([
    { method: 'eth_call', params: readManyParams(calls, from, 'latest') },
    { method: 'eth_call', params: [transaction, 'latest'] },
  ])
  const answers = told.flatMap(({ outcomes }) => orNull(() => readSend(transfer, outcomes)) ?? [])
  return agree(answers, chain.network.witnessesMin)
}

/**
 * Throws if the node says that the sender can't pay, or reports its own error: neither says anything about the
 * transfer.
 */
function readSend(
  { authorization, inFlightUnits = 0n }: Asked,
  [read, sent]: readonly RpcOutcome[],
): Simulated {
  const [block, state, balance] = decodeAggregate(unwrap<Hex>(read))
  if (!state?.success || !balance?.success) throw notToken()
  if (!sent || ('error' in sent && (isUnfunded(sent.error) || !isRevert(sent.error)))) unwrap(sent)
  const refusal = sent && 'error' in sent ? sent.error : null
  const units = toUnits(balance)
  return {
    isGood: refusal === null && units >= authorization.value + inFlightUnits,
    isNonceUsed: isTrue(state),
    balance: units,
    revertReason: refusal === null ? '' : readReason(readRevert(refusal)),
    blockNumber: numberIn(block),
  }
}

/**
 * What enough providers say. If too few answered, but all of their answers are good, that stands, because logs must
 * prove the outcome anyway. Providers behind the others don't count.
 */
function agree(answers: readonly Simulated[], witnessesMin: number): Simulated | null {
  const height = Math.max(...answers.map(({ blockNumber }) => blockNumber))
  const current = answers.filter(({ blockNumber }) => blockNumber === height)
  const heard = current.length >= witnessesMin ? current : answers
  const groups = [...Map.groupBy(heard, ({ isGood, isNonceUsed }) => `${isGood} ${isNonceUsed}`).values()]
  const [most = []] = groups.toSorted((a, b) => b.length - a.length)
  const richestFirst = most.toSorted((a, b) => (a.balance < b.balance ? 1 : -1))
  // The highest balance that enough of them reach.
  const told = richestFirst[witnessesMin - 1] ?? richestFirst.at(-1) ?? null
  if (isMost(most.length, heard.length, witnessesMin)) return told
  return groups.length === 1 && told?.isGood ? told : null
}

/**
 * Whether the token refuses to pay an address. A refusal is shown to a person, so it needs as many providers as the
 * network requires. If fewer answer and none of them refuses, the address is accepted: the token judges the transfer
 * again.
 */
export async function refusesToPay(chain: Chain, asset: string, address: Hex): Promise<boolean> {
  const { witnessesMin } = chain.network
  const call = { target: asset, callData: withAddress(isBlacklisted, address) }
  const refused = (told: readonly ProviderAnswer[]) =>
    told.flatMap(({ outcomes }) => orNull(() => isTrue(decodeAggregate(unwrap<Hex>(outcomes[0]))[0])) ?? [])
  const told = await chain.rpc.askAll(
    [{ method: 'eth_call', params: readManyParams([call], reader, 'latest') }],
    (some) => {
      const answers = refused(some)
      const enough = enoughOf(chain.rpc.providers, witnessesMin)
      return [true, false].some((one) => answers.filter((each) => each === one).length >= enough)
    },
  )
  const answers = refused(told)
  const yes = answers.filter((answer) => answer).length
  if (isMost(yes, answers.length, witnessesMin)) return true
  if (isMost(answers.length - yes, answers.length, witnessesMin) || (answers.length > 0 && yes === 0))
    return false
  throw new RpcUnavailableError('Too few nodes agree on whether the token refuses the address.')
}

function stateCalls({ asset, authorization: { from, nonce } }: SignedTransfer): Call[] {
  return [
    { target: asset, callData: authorizationStateCalldata(from, nonce) },
    { target: asset, callData: withAddress(balanceOf, from) },
  ]
}

/** All calls about these transfers, each only once: most of them go to the same few recipients and tokens. */
function questionsAbout(transfers: readonly SignedTransfer[]): ReadonlyMap<string, Call> {
  const calls: Call[] = [
    { target: multicall, callData: getBlockNumber },
    { target: multicall, callData: getBlockTime },
    ...transfers.flatMap((transfer) => [...stateCalls(transfer), ...refusalCalls(transfer)]),
  ]
  return new Map(calls.map((call) => [keyOf(call), call]))
}

function keyOf({ target, callData }: Call): string {
  return `${target} ${callData}`
}

function refusalCalls({ asset, authorization: { from, to } }: SignedTransfer): Call[] {
  return [
    { target: asset, callData: paused },
    { target: asset, callData: withAddress(isBlacklisted, from) },
    { target: asset, callData: withAddress(isBlacklisted, to) },
  ]
}

function callsFor(transfers: readonly SignedTransfer[], withPending: boolean) {
  const pending = transfers.flatMap((transfer) => stateCalls(transfer).slice(0, 1))
  const method = 'eth_call'
  return [
    { method, params: readManyParams([...questionsAbout(transfers).values()], reader, 'latest') },
    ...(withPending ? [{ method, params: readManyParams(pending, reader, 'pending') }] : []),
  ]
}

/** Null if the provider answered with an error or something invalid. */
function orNull<Answer>(read: () => Answer): Answer | null {
  try {
    return read()
  } catch (error) {
    if (isNodeError(error)) return null
    throw error
  }
}

function parse(transfers: readonly Asked[], outcomes: readonly RpcOutcome[]): Simulated[] {
  const results = decodeAggregate(unwrap<Hex>(outcomes[0]))
  const [block, time] = results
  const answers = new Map([...questionsAbout(transfers).keys()].map((key, i) => [key, results[i]]))
  const answersTo = (calls: readonly Call[]) => calls.map((call) => answers.get(keyOf(call)))
  // Not every node has a pending block. Without one, a pending nonce is seen only once it is in a block.
  const pending = outcomes[1] && 'result' in outcomes[1] ? decodeAggregate(unwrap<Hex>(outcomes[1])) : []
  const seconds = BigInt(time?.returnData ?? '0x0')
  return transfers.map((transfer, i) => {
    const { authorization, inFlightUnits = 0n } = transfer
    const [state, balance] = answersTo(stateCalls(transfer))
    const [isPaused, ...blacklisted] = answersTo(refusalCalls(transfer))
    if (!state?.success || !balance?.success) throw notToken()
    const units = toUnits(balance)
    const revertReason = whyRefused(authorization, units - inFlightUnits, seconds, isPaused, blacklisted)
    return {
      isGood: revertReason === '',
      isNonceUsed: isTrue(state) || (pending[i]?.success === true && isTrue(pending[i])),
      balance: units,
      revertReason,
      blockNumber: numberIn(block),
    }
  })
}

/** The error that the token would return, or an empty text if it would accept the transfer. */
function whyRefused(
  { value, validAfter, validBefore }: Authorization,
  balance: bigint,
  seconds: bigint,
  isPaused: CallResult | undefined,
  blacklisted: readonly (CallResult | undefined)[],
): string {
  if (seconds <= validAfter) return 'authorization is not yet valid'
  if (seconds >= validBefore) return 'authorization is expired'
  if (balance < value) return 'transfer amount exceeds balance'
  if (isTrue(isPaused)) return 'paused'
  return blacklisted.some(isTrue) ? 'account is blacklisted' : ''
}

/** A token without such a function answers with nothing, which counts as no. */
function isTrue(result: CallResult | undefined): boolean {
  return result?.success === true && result.returnData.length === 66 && BigInt(result.returnData) !== 0n
}

function toUnits({ returnData }: CallResult): bigint {
  if (returnData.length !== 66) throw notToken()
  return BigInt(returnData)
}

function numberIn(result: CallResult | undefined): number {
  return Number.parseInt(result?.returnData ?? '0x0', 16)
}

function withAddress(selector: Hex, address: Hex): Hex {
  return `${selector}${address.slice(2).padStart(64, '0')}`
}

function toQuantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

function notToken(): Error {
  return new RpcUnavailableError('A node answered as if the token had no EIP-3009.')
}

const getBlockNumber: Hex = '0x42cbb15c'
const getBlockTime: Hex = '0x0f28c97d'
const balanceOf: Hex = '0x70a08231'
const paused: Hex = '0x5c975abb'
const isBlacklisted: Hex = '0xfe575a87'

const errorAbi = [{ type: 'error', name: 'Error', inputs: [{ name: 'message', type: 'string' }] }] as const

function readReason(data: Hex): string {
  try {
    return String(decodeErrorResult({ abi: errorAbi, data }).args[0])
  } catch {
    // Custom errors and empty reverts have no message, so the refusal has none.
    return ''
  }
}
