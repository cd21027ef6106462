import { enoughOf, isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import type { ProviderAnswer, RpcOutcome } from '../rpc.ts'
import { blockCall, blockIn, type Chain } from './chain.ts'
import { authorizationStateCalldata } from './eip3009.ts'
import { decodeAggregate, readManyParams } from './multicall.ts'

export type AccountNonce = { readonly address: string; readonly nonce: number; readonly isWitnessed: boolean }

/**
 * The nonce of each account after a block, which is the number of its mined transactions; or with pending ones.
 * Accounts about which providers differ are left out.
 */
export async function readAgreedNonces(
  { rpc, network }: Chain,
  accounts: readonly string[],
  after: number | 'latest' | 'pending',
): Promise<AccountNonce[]> {
  if (accounts.length === 0) return []
  const at = typeof after === 'string' ? after : `0x${after.toString(16)}`
  const calls = accounts.map((account) => ({ method: 'eth_getTransactionCount', params: [account, at] }))
  const agreed = (told: readonly ProviderAnswer[]) => agreeOnNonces(accounts, told, network.witnessesMin)
  const isEnough = (told: readonly ProviderAnswer[]) =>
    told.length >= enoughOf(rpc.providers, network.witnessesMin) &&
    agreed(told).filter(({ isWitnessed }) => isWitnessed).length === accounts.length
  return agreed(await rpc.askAll(calls, isEnough))
}

/**
 * The nonce that each account uses next, pending transactions included. Not every provider has a pending block: for one
 * that does not answer, the mined ones count.
 */
export async function readNextNonces(
  { rpc, network }: Chain,
  accounts: readonly string[],
): Promise<AccountNonce[]> {
  const method = 'eth_getTransactionCount'
  const calls = accounts.flatMap((account) => [
    { method, params: [account, 'pending'] },
    { method, params: [account, 'latest'] },
  ])
  const told = (await rpc.askAll(calls)).map(({ provider, outcomes }) => ({
    provider,
    outcomes: accounts.flatMap((_, i) => {
      const pending = outcomes[2 * i]
      return (pending && 'result' in pending ? pending : outcomes[2 * i + 1]) ?? []
    }),
  }))
  return agreeOnNonces(accounts, told, network.witnessesMin)
}

function agreeOnNonces(
  accounts: readonly string[],
  told: readonly ProviderAnswer[],
  witnessesMin: number,
): AccountNonce[] {
  return accounts.flatMap((address, place) => {
    const nonces = told.flatMap(({ outcomes }) => {
      const outcome = outcomes[place]
      return !outcome || 'error' in outcome ? [] : Number.parseInt(outcome.result as Hex, 16)
    })
    const counts = [...Map.groupBy(nonces, (nonce) => nonce)].toSorted(([, a], [, b]) => b.length - a.length)
    const [most] = counts
    const isWitnessed = most !== undefined && isMost(most[1].length, nonces.length, witnessesMin)
    if (!most || (counts.length > 1 && !isWitnessed)) return []
    return { address, nonce: most[0], isWitnessed }
  })
}

/**
 * The balance that an account can rely on: the highest that enough providers reach. If fewer answer, the lowest answer.
 */
export async function readFunds({ rpc, network }: Chain, account: string): Promise<bigint> {
  const told = await rpc.callAll<Hex>('eth_getBalance', [account, 'latest'])
  const amounts = told.filter((wei) => /^0x[0-9a-f]+$/i.test(String(wei))).map((wei) => BigInt(wei))
  const highestFirst = amounts.toSorted((a, b) => (a < b ? 1 : -1))
  const needed = Math.max(network.witnessesMin, Math.floor(amounts.length / 2) + 1)
  return highestFirst[needed - 1] ?? highestFirst.at(-1) ?? 0n
}

/**
 * The gas of an empty block: the most that enough providers reach. If fewer answer, the lowest answer; null if none says
 * it.
 */
export async function readBlockGas({ rpc, network }: Chain): Promise<bigint | null> {
  const told = await rpc.askAll([blockCall('latest')])
  const limits = told.flatMap(({ outcomes: [outcome] }) => {
    const gas = String(blockIn(outcome)?.header.gasLimit)
    return /^0x[0-9a-f]+$/i.test(gas) ? BigInt(gas) : []
  })
  const highestFirst = limits.toSorted((a, b) => (a < b ? 1 : -1))
  return highestFirst[network.witnessesMin - 1] ?? highestFirst.at(-1) ?? null
}

/** getL1FeeUpperBound(uint256 unsignedTxSize) and getOperatorFee(uint256 gasUsed). */
const dataFeeCall = '0xf1c7a58b'
const operatorFeeCall = '0x275aedd2'

/**
 * The most that a transaction of this size and gas costs beyond its gas: the fee for its data on the layer below, and
 * the operator's fee. Zero on networks that charge for gas alone.
 */
export async function readDataFee(
  { network, rpc }: Chain,
  { bytes, gas }: { readonly bytes: number; readonly gas: bigint },
): Promise<bigint> {
  const { gasPriceOracle } = network
  if (!gasPriceOracle) return 0n
  const ask = (call: string, argument: bigint) => ({
    method: 'eth_call',
    params: [{ to: gasPriceOracle, data: `${call}${argument.toString(16).padStart(64, '0')}` }, 'latest'],
  })
  const told = await rpc.askAll([ask(dataFeeCall, BigInt(bytes)), ask(operatorFeeCall, gas)])
  const fees = told.flatMap(({ outcomes }) => sumIn(outcomes) ?? []).toSorted((a, b) => (a < b ? 1 : -1))
  // The highest fee that enough providers reach; they may be a block apart.
  const fee = fees[network.witnessesMin - 1] ?? fees.at(-1)
  // An unknown fee must not count as none.
  if (fee === undefined) throw new Error('the network’s GasPriceOracle does not answer; see networks.ts')
  return fee
}

/** Null if one of the answers is no number: without the contract, a node answers 0x. */
function sumIn(outcomes: readonly RpcOutcome[]): bigint | null {
  const answers = outcomes.map((outcome) => ('result' in outcome ? String(outcome.result) : ''))
  if (!answers.every((answer) => /^0x[0-9a-f]+$/i.test(answer))) return null
  return answers.reduce((sum, answer) => sum + BigInt(answer), 0n)
}

/**
 * How far back the search looks first, in blocks. The distance doubles until the nonce is still unused there, however
 * fast blocks come.
 */
const blocksBack = 64

type Found = { readonly hash: Hex; readonly from: Hex; readonly nonce: Hex }

/**
 * The transaction that used an account's nonce, if enough providers have it. Null if it is not found: only one provider
 * is asked where to look, and it may hide the transaction.
 */
export async function findUse({ rpc, network }: Chain, address: Hex, nonce: number): Promise<Hex | null> {
  const hex = (number: number): Hex => `0x${number.toString(16)}`
  const isUsedAt = async (block: number) =>
    Number.parseInt(await rpc.call<Hex>('eth_getTransactionCount', [address, hex(block)]), 16) > nonce
  const head = Number.parseInt(await rpc.call<Hex>('eth_blockNumber', []), 16)
  let [before, by] = [head, head]
  for (let back = blocksBack; await isUsedAt(before); back *= 2) {
    if (before === 0) return null
    by = before
    before = Math.max(0, head - back)
  }
  if (before === head) return null
  while (by - before > 1) {
    const middle = (before + by) >> 1
    if (await isUsedAt(middle)) by = middle
    else before = middle
  }
  const block = await rpc.call<{ transactions?: readonly (Found | null)[] } | null>('eth_getBlockByNumber', [
    hex(by),
    true,
  ])
  // An invalid answer from one provider must not stop the lane: the others may have no such transaction.
  const isUse = (found: Found | null) =>
    String(found?.from).toLowerCase() === address && Number.parseInt(String(found?.nonce), 16) === nonce
  const hash = Array.isArray(block?.transactions) ? block.transactions.find(isUse)?.hash : null
  if (!hash) return null
  const told = await rpc.callAll<Found | null>('eth_getTransactionByHash', [hash])
  return isMost(told.filter(isUse).length, told.length, network.witnessesMin) ? hash : null
}

/** Whether each nonce is used at a block; null if too few nodes answered or they disagree. */
export async function readStates(
  chain: Chain,
  blockHash: Hex,
  transfers: readonly { asset: string; authorization: { from: Hex; nonce: Hex } }[],
): Promise<(boolean | null)[]> {
  const calls = transfers.map(({ asset, authorization }) => ({
    target: asset,
    callData: authorizationStateCalldata(authorization.from, authorization.nonce),
  }))
  const zero = '0x0000000000000000000000000000000000000000'
  const answers = await chain.rpc.callAll<Hex>('eth_call', readManyParams(calls, zero, { blockHash }))
  const decoded = answers.map((answer) => decodeAggregate(answer))
  return transfers.map((_, i) => {
    const said = decoded.map((results) => (results[i]?.success ? BigInt(results[i].returnData) !== 0n : null))
    const [first] = said
    const isAgreed = said.length >= chain.network.witnessesMin && said.every((state) => state === first)
    return isAgreed && first !== undefined ? first : null
  })
}
