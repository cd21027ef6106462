import type { Chain } from '../../chains/evm/chain.ts'
import { readCalls } from '../../chains/evm/read-calls.ts'
import { readTransactions } from '../../chains/evm/transactions.ts'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { idOfMarker } from '../../ids.ts'
import type { Concern, Seen } from '../credits/rows.ts'
import { isBound, isBoundTo } from '../nonces.ts'
import { insertRecovered, readIsRestoring } from '../reconcile.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'

/**
 * While a restore is reconciled, assigns transfers without a claim to the checkouts that their markers name, and
 * records the others without a claim. Returns the concerns with the recovered claims. At any other time, every
 * payment that we sent has its claim, and a marker proves nothing because anybody can write one.
 *
 * Enough providers must report who sent a transaction and what is in it. Until they do, the block waits: payments are
 * refused meanwhile anyway.
 */
export async function recoverClaims(
  ctx: Context,
  tx: Transaction,
  chain: Chain,
  concerns: readonly Concern[],
): Promise<Concern[]> {
  const lost = concerns.filter(({ claim }) => claim === null)
  const network = chain.network.caip2
  if (lost.length === 0 || !(await readIsRestoring(tx, network))) return [...concerns]
  const sent = await readTransactions(
    chain,
    lost.map(({ seen }) => seen.transactionHash),
  )
  const settlers = new Set<string>(await listSettlerAddresses(tx, network))
  const recovered: Concern[] = []
  for (const concern of concerns) {
    const { seen } = concern
    if (concern.claim !== null) {
      recovered.push(concern)
      continue
    }
    const transaction = sent.get(seen.transactionHash)
    if (!transaction)
      throw new RpcUnavailableError(`Too few nodes agree about transaction ${seen.transactionHash}.`)
    const { from, to, input } = transaction
    const call = to
      ? readCalls({ to, data: input }).find(
          ({ payer, nonce }) => payer === seen.payer && nonce === seen.nonce,
        )
      : undefined
    const marker = settlers.has(from) ? call?.marker : null
    const named = marker ? idOfMarker('ch', ctx.config.cell, marker) : null
    const checkoutId = named && mayPay(seen, named) ? named : null
    const claim = await insertRecovered(
      tx,
      network,
      { seen, signature: call?.signature ?? '0x', checkoutId },
      true,
    )
    recovered.push(claim ? { ...concern, claim: { ...claim, isMatch: true } } : concern)
  }
  return recovered
}

/** A bound nonce pays the checkout that it was made for, and no other. */
function mayPay({ nonce }: Seen, checkoutId: string): boolean {
  return !isBound(nonce as `0x${string}`) || isBoundTo(nonce as `0x${string}`, checkoutId)
}
