import { decodeFunctionData } from 'viem/utils'
import { aggregate3, type Chain, type Hex, multicall } from '../../chains/chain.ts'
import { readTransferCalldata } from '../../chains/eip3009.ts'
import { unwrap } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../db.ts'
import { idOfMarker } from '../../ids.ts'
import type { Rail } from '../rail.ts'
import { maxTimeoutSeconds } from '../verify.ts'
import * as rows from './reconcile-rows.ts'
import type { Concern } from './rows.ts'

/**
 * After the database was put back to an earlier point, what was claimed and settled since is missing from it, but not
 * from the chain. `reconcile` is run once, before serving:
 *
 *   nonces    go on from what the chain has seen, so that none is used twice
 *   blocks    of the last hour before the restored tip are read again, and everything after it for the first time
 *   transfers by authorization to a wallet of ours are recorded, so that none can be presented again; those that carry
 *             a checkout's marker, in a transaction of a settler of ours, are credited to it; the rest are unmatched
 *   payments  are refused (503) until a block at negative depth is later than any authorization that could have been
 *             claimed before the restore: only then is nothing of that time still on its way
 *   the log   gets a new epoch, so that stores resume from where the restored log ends
 *
 * Markers count whenever they are seen, not only then.
 */
export async function startReconciling(ctx: Context, rails: readonly Rail[]): Promise<void> {
  for (const {
    network: { caip2: network },
    readNonce,
  } of rails) {
    const settlers = await rows.listSettlerAddresses(ctx.db, network)
    const nonces = await Promise.all(
      settlers.map(async (address) => ({ address, nonce: await readNonce(address) })),
    )
    await ctx.db.transaction((tx) => rows.beginRestore(tx, network, nonces))
  }
  crashPoint(ctx, 'reconcile-before-epoch')
  await rows.raiseEpoch(ctx.db)
}

/** Nothing that was claimed before a restore is valid for longer than this after it. */
const lastClaimSeconds = maxTimeoutSeconds + 60

/** Ends the waiting once a deep block is late enough. */
export async function finishReconciling(ctx: Context, network: string, deepTime: Date): Promise<void> {
  await rows.finishRestore(ctx.db, network, deepTime, lastClaimSeconds)
}

/**
 * Gives transfers without a claim back to the checkouts that their markers name. Returns the concerns with the claims
 * that were found.
 */
export async function recoverClaims(
  ctx: Context,
  tx: Transaction,
  chain: Chain,
  concerns: readonly Concern[],
): Promise<Concern[]> {
  const lost = concerns.filter(({ claim }) => claim === null)
  if (lost.length === 0) return [...concerns]
  const network = chain.network.caip2
  const isRestoring = await rows.isRestoring(tx, network)
  const inputs = await readInputs(chain, [...new Set(lost.map(({ seen }) => seen.transactionHash))])
  const settlers = new Set(await rows.listSettlerAddresses(tx, network))
  const recovered: Concern[] = []
  for (const concern of concerns) {
    const { seen } = concern
    const input = concern.claim === null ? inputs.get(seen.transactionHash) : undefined
    if (!input) {
      recovered.push(concern)
      continue
    }
    const call = readCalls(input).find(({ payer, nonce }) => payer === seen.payer && nonce === seen.nonce)
    const marker = settlers.has(input.from) ? call?.marker : null
    const checkoutId = marker ? idOfMarker('ch', ctx.config.cell, marker) : null
    const claim = await rows.insertRecovered(
      tx,
      network,
      seen,
      call?.signature ?? '0x',
      checkoutId,
      isRestoring,
    )
    recovered.push(claim ? { ...concern, claim: { ...claim, isMatch: true } } : concern)
  }
  return recovered
}

type Input = { readonly from: Hex; readonly to: Hex; readonly data: Hex }

async function readInputs(chain: Chain, hashes: readonly string[]): Promise<Map<string, Input>> {
  const outcomes = await chain.rpc.batch(
    hashes.map((hash) => ({ method: 'eth_getTransactionByHash', params: [hash] })),
  )
  const inputs = new Map<string, Input>()
  for (const [i, hash] of hashes.entries()) {
    const found = unwrap<{ from: Hex; to: Hex | null; input: Hex } | null>(outcomes[i])
    if (found?.to)
      inputs.set(hash, { from: lower(found.from), to: lower(found.to), data: lower(found.input) })
  }
  return inputs
}

function lower(hex: Hex): Hex {
  return hex.toLowerCase() as Hex
}

/** The transfers by authorization in a transaction of the form that lanes send. */
function readCalls({ to, data }: Input): { payer: Hex; nonce: Hex; signature: Hex; marker: Hex | null }[] {
  if (to !== multicall) return [readTransferCalldata(data)].flatMap((call) => call ?? [])
  try {
    const { args } = decodeFunctionData({ abi: aggregate3, data })
    return args[0].flatMap(({ callData }) => readTransferCalldata(lower(callData)) ?? [])
  } catch {
    // Somebody else's call of Multicall3.
    return []
  }
}
