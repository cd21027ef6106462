import type { Chain } from '../../chains/evm/chain.ts'
import { readCalls } from '../../chains/evm/read-calls.ts'
import type { Hex } from '../../chains/hex.ts'
import { unwrap } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { idOfMarker } from '../../ids.ts'
import type { Concern } from '../credits/rows.ts'
import { insertRecovered, readIsRestoring } from '../restores/rows.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'

/**
 * Assigns transfers without a claim to the checkouts that their markers name. Returns the concerns with the recovered
 * claims.
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
  const isRestoring = await readIsRestoring(tx, network)
  const inputs = await readInputs(chain, [...new Set(lost.map(({ seen }) => seen.transactionHash))])
  const settlers = new Set(await listSettlerAddresses(tx, network))
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
    const claim = await insertRecovered(tx, network, seen, call?.signature ?? '0x', checkoutId, isRestoring)
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
