import assert from 'node:assert/strict'
import { batchCalldata, batcher, isPackable } from '../../chains/evm/batcher.ts'
import { type Chain, readHasCode } from '../../chains/evm/chain.ts'
import { transferCalldata } from '../../chains/evm/eip3009.ts'
import { aggregateCalldata, multicall } from '../../chains/evm/multicall.ts'
import type { Unsigned } from '../../chains/evm/policy.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import { checkTransfers, contractGas, type Simulated, simulateSend } from '../../chains/evm/simulate.ts'
import { isNodeError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database } from '../../database/db.ts'
import { markerOf } from '../../ids.ts'
import { toSafeNumber } from '../../safe-number.ts'
import { type Refused, reject } from '../end.ts'
import { noteWaiting } from '../hand-outs.ts'
import type { UpdateStatus } from '../rail.ts'
import { type Authorized, isUncredited, noteContracts } from '../rows.ts'
import type { Sendable } from '../settlers/rows.ts'
import { reasonOf } from './verify.ts'

/** An authorization to send, and the amount that its payer had in flight when it was simulated. */
export type Chosen = Authorized & Pick<Sendable, 'unsettled'>

/** A claim that may be sent, as listed. */
export type Candidate = Authorized & {
  /** Whether a contract wallet's last payment was mined without effect. */
  readonly hasFailed?: boolean
}

type Lane = { readonly chain: Chain; readonly signer: Signer; readonly updateStatus: UpdateStatus }

/** The transaction that would send a payment alone, with its fees. */
type SendOf = (authorized: Authorized) => Omit<Unsigned, 'nonce'>

/** An authorization that cannot be sent is skipped for this long: only its payer or a new block can change that. */
const restMs = 5_000
/**
 * The same for a refund that the token refuses. It is not rejected, because anybody who has its signature can use it
 * until its window ends. So it counts until then, and is sent if the wallet is filled again.
 */
const refundRestMs = 30_000
/** Skipped until there is a new block. */
export const untilNextBlock = Number.POSITIVE_INFINITY

/**
 * How many unsettled payments a new payer may have in flight. A payer who moves their money away before our transaction
 * makes all of them fail, for the price of one transfer, which is about the price of one failed payment. Every settled
 * payment raises the limit by one, and a failed one resets it.
 */
const unsettledMax = 1
const settledMax = 150

type Choosing = {
  /** Until when each payment is skipped. */
  readonly resting: Map<string, number>
  readonly headNumber: number
  readonly sendOf: SendOf
}

/** Simulates what could be sent in addition to what is in flight, and rejects what the token refuses. */
export async function choose(
  ctx: Context,
  lane: Lane,
  sendable: readonly Candidate[],
  { resting, headNumber, sendOf }: Choosing,
): Promise<readonly Chosen[]> {
  if (sendable.length === 0) return []
  const { network } = lane.chain
  const payers = await readPayers(ctx.db, network.caip2, sendable.map(keyOf))
  crashPoint(ctx, 'simulate-before')
  const [verdicts, coded] = await Promise.all([simulate(lane, sendable, sendOf), findCoded(lane, sendable)])
  const rest = sendable.filter((authorized) => !coded.has(authorized))
  crashPoint(ctx, 'simulate-after')
  // From now on they wait in the queue of contract wallets.
  if (coded.size > 0) await noteContracts(ctx.db, network.caip2, [...coded].map(keyOf))
  const good: Chosen[] = []
  const refused: Refused[] = []
  const waiting: Refused[] = []
  const onTheirWay = new Map<string, number>()
  const chosen = new Map<string, bigint>()
  for (const authorized of rest) {
    const verdict = verdicts.get(authorized)
    const { asset, authorization } = authorized.transfer
    const setAside = (until = ctx.now().getTime() + restMs) =>
      resting.set(keyText(authorized.transfer), until)
    const refuse = (reason: string) => {
      if (authorized.refundId === null) refused.push({ ...keyOf(authorized), reason })
      else {
        waiting.push({ ...keyOf(authorized), reason })
        setAside(ctx.now().getTime() + refundRestMs)
      }
    }
    if (authorized.hasFailed) {
      refuse('contract_wallet_failed_on_chain')
      continue
    }
    // The logs decide about a used nonce, and an authorization that was sent is never rejected.
    if (!verdict || verdict.isNonceUsed || (!verdict.isGood && authorized.state === 'sent')) {
      setAside()
      continue
    }
    const key = `${asset} ${authorization.from}`
    const payer = payers.get(key) ?? { unsettled: 0n, unsettledCount: 0, settledCount: 0 }
    const isFirst = authorized.state !== 'sent'
    const count = onTheirWay.get(key) ?? payer.unsettledCount
    const needed = authorization.value + (isFirst ? payer.unsettled : 0n) + (chosen.get(key) ?? 0n)
    if (verdict.isGood && isFirst && count >= unsettledMax + payer.settledCount) {
      setAside(untilNextBlock)
    } else if (verdict.isGood && verdict.balance >= needed) {
      good.push({ ...authorized, unsettled: payer.unsettled })
      onTheirWay.set(key, count + 1)
      chosen.set(key, (chosen.get(key) ?? 0n) + authorization.value)
      // A node behind the head may not have seen the money arrive.
    } else if (!verdict.isGood && verdict.blockNumber >= headNumber) {
      refuse(
        verdict.balance < authorization.value
          ? 'invalid_exact_evm_insufficient_balance'
          : reasonOf(verdict.revertReason),
      )
      // The balance covers this payment, but not together with what its payer has in flight.
    } else if (verdict.isGood) setAside()
  }
  if (waiting.length > 0) await noteWaiting(ctx.db, network.caip2, waiting)
  if (refused.length > 0) await reject(ctx, network.caip2, refused, lane.updateStatus)
  return good
}

/**
 * Finds accounts that got code (EIP-7702) since their payment was verified, because that code runs in the transaction.
 */
async function findCoded({ chain }: Lane, sendable: readonly Candidate[]): Promise<Set<Candidate>> {
  const plain = sendable.filter(({ transfer }) => !transfer.isContract)
  if (plain.length === 0) return new Set()
  const hasCode = await readHasCode(
    chain,
    plain.map(({ transfer }) => transfer.authorization.from),
  )
  return new Set(plain.filter((_, i) => hasCode[i]))
}

async function simulate(
  { chain, signer }: Lane,
  sendable: readonly Candidate[],
  sendOf: SendOf,
): Promise<Map<Candidate, Simulated | null>> {
  const plain = sendable.filter(({ transfer }) => !transfer.isContract)
  const contracts = sendable.filter(({ transfer }) => transfer.isContract)
  const [checked, ...simulated] = await Promise.all([
    checkTransfers(
      chain,
      plain.map(({ transfer }) => transfer),
    ),
    ...contracts.map((authorized) =>
      simulateSend(chain, signer.address, authorized.transfer, sendOf(authorized)).catch(toUnknown),
    ),
  ])
  return new Map([
    ...plain.map((authorized, i): [Candidate, Simulated | null] => [authorized, checked[i] ?? null]),
    ...contracts.map((authorized, i): [Candidate, Simulated | null] => [authorized, simulated[i] ?? null]),
  ])
}

/** A wallet whose code no node can run must not keep the others from being sent. */
function toUnknown(error: unknown): null {
  if (!isNodeError(error)) throw error
  return null
}

function keyOf({ transfer: { asset, authorization } }: Authorized) {
  return { asset, payer: authorization.from, nonce: authorization.nonce }
}

export function keyText({ asset, authorization }: Authorized['transfer']): string {
  return `${asset} ${authorization.from} ${authorization.nonce}`
}

/** EIP-7825: a chain with this cap refuses transactions with a higher gas limit. Base has it. */
const transactionGasMax = 16_777_216n

/**
 * The most gas that one call of the batcher may use. On Circle's token, an ordinary wallet's payment needs at most
 * 80,000: if it is the first in its batch, and its recipient never held the token.
 */
export const callGas = 100_000n
/** Per call in addition: at most 196 bytes of calldata at 16 gas each, and the batcher's own steps. */
const callOverheadGas = 4_000n
/** The transaction itself, first access to the tokens, and the 64th that the last call leaves behind. */
const batchGas = 40_000n

/** In Multicall3 the calls share the transaction's gas, so each adds a reserve. Unused gas costs nothing. */
const sharedCallGas = 120_000n
const sharedBatchGas = 80_000n

const aloneGas = 200_000n

/** A full batch. A settler counts as ready if it can pay for one up front. */
export const fullBatch = {
  payments: countFitting(true),
  gas: transactionGasMax,
  /** About 200 bytes per payment. Without the batcher it is more, but chains without it charge no data fee. */
  bytes: 32_000,
} as const

/** How many authorizations fit into one transaction with this much gas if each uses all its own. */
export function countFitting(hasBatcher: boolean, gas = transactionGasMax): number {
  const most = gas < transactionGasMax ? gas : transactionGasMax
  const fitting = hasBatcher
    ? (most - batchGas) / (callGas + callOverheadGas)
    : (most - sharedBatchGas) / sharedCallGas
  return toSafeNumber(fitting)
}

/** Whether an authorization can share a transaction with others. */
export function canShare({ transfer }: Authorized): boolean {
  return !transfer.isContract && isPackable(transfer)
}

/**
 * The call that settles these authorizations: a single one goes directly to its token; several go through the batcher,
 * or through Multicall3 if the chain has no batcher. In both, each may fail without the others.
 */
export function toCall(
  hasBatcher: boolean,
  carried: readonly Authorized[],
): Pick<Unsigned, 'to' | 'data' | 'gas'> {
  const [single] = carried
  const count = BigInt(carried.length)
  assert(carried.length <= countFitting(hasBatcher), 'the batch is too large for one transaction')
  if (single && carried.length === 1)
    return {
      to: single.transfer.asset,
      data: aloneCalldata(single),
      gas: single.transfer.isContract ? contractGas : aloneGas,
    }
  if (hasBatcher) {
    const payments = carried.map(({ transfer, checkoutId }) => ({
      ...transfer,
      marker: checkoutId ? markerOf(checkoutId) : null,
    }))
    const gas = batchGas + (callGas + callOverheadGas) * count
    return { to: batcher, data: batchCalldata(payments, callGas), gas }
  }
  const calls = carried.map((authorized) => ({
    target: authorized.transfer.asset,
    callData: aloneCalldata(authorized),
  }))
  return { to: multicall, data: aggregateCalldata(calls), gas: sharedBatchGas + sharedCallGas * count }
}

function aloneCalldata({ transfer, checkoutId }: Authorized) {
  return transferCalldata(
    transfer.authorization,
    transfer.signature,
    checkoutId ? markerOf(checkoutId) : '0x',
  )
}

/** What is known of a payer when its next payments are chosen. */
type PayerState = {
  /** The amount in flight. The balance must cover it in addition to anything sent next. */
  readonly unsettled: bigint
  /** How many payments are in flight. */
  readonly unsettledCount: number
  /** How many payments it has settled since its last one that was mined without effect, counted up to a limit. */
  readonly settledCount: number
}

/** The states of payers, by asset and payer. */
async function readPayers(
  db: Database,
  network: string,
  keys: readonly { readonly asset: string; readonly payer: string }[],
): Promise<Map<string, PayerState>> {
  const rows = await db.query<{
    asset: string
    payer: string
    units: string
    unsettled: number
    settled: number
  }>(
    `select i.asset, i.payer, coalesce(s.units, 0) as units, s.unsettled, t.settled
     from (select distinct asset, payer from unnest($2::text[], $3::text[]) as k (asset, payer)) i
     cross join lateral (
       select sum(a.amount) as units, count(*)::integer as unsettled from authorizations a
       where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.state = 'sent' and ${isUncredited}) s
     cross join lateral (
       select count(*)::integer as settled from (select 1 from authorizations a
         where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.is_credited
           and a.claimed_at > coalesce((select max(f.failed_at) from authorizations f
             where f.network = $1 and f.payer = i.payer and f.failed_at is not null), '-infinity')
         limit $4) recent) t`,
    [network, keys.map(({ asset }) => asset), keys.map(({ payer }) => payer), settledMax],
  )
  return new Map(
    rows.map((row) => [
      `${row.asset} ${row.payer}`,
      { unsettled: BigInt(row.units), unsettledCount: row.unsettled, settledCount: row.settled },
    ]),
  )
}
