import type { SvmChain } from '../../chains/svm/chain.ts'
import { type Landed, readLanded } from '../../chains/svm/landed.ts'
import { listSent } from '../../chains/svm/lists.ts'
import { encodeTransaction, hashMessage } from '../../chains/svm/message.ts'
import { type ExactTransfer, findTokenAccount, readExact } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import { isId } from '../../ids.ts'
import { isRefundNonce } from '../nonces.ts'
import { finishReconciling, insertRecovered } from '../reconcile.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'
import * as rows from './rows.ts'

/** The settlers whose keys this process has, and those already reported as unknown to the database. */
export type OwnKeys = { readonly addresses: readonly string[]; readonly reported: Set<string> }

/**
 * After a restore, finds transactions that our settlers sent and the database has forgotten. A payment names its
 * checkout in its memo. If that checkout made exactly this offer, the transaction is recorded as sent for it, and is
 * watched and credited like any other. A refund names its slot instead. It is recorded even if its refund is unknown,
 * so that it counts before another refund of that payment is prepared.
 *
 * Payments and refunds stay refused until enough providers agree on what was sent. They also stay refused while we have
 * the key of a settler that the database does not know: the settler may have been added after the restored point and
 * have sent something since.
 */
export async function recoverSent(ctx: Context, chain: SvmChain, keys: OwnKeys, time: Date): Promise<void> {
  const network = chain.network.caip2
  const since = await rows.readRestorePoint(ctx.db, network)
  if (since === null) return
  const settlers: readonly string[] = await listSettlerAddresses(ctx.db, network)
  const unadded = keys.addresses.filter((address) => !settlers.includes(address))
  let isComplete = unadded.length === 0
  for (const settler of unadded) {
    if (keys.reported.has(settler)) continue
    keys.reported.add(settler)
    ctx.log.error(
      { network: chain.network.id, settler },
      'the database was restored and does not know this settler, which may have sent payments since: no payment is accepted on this network until it is added (settler add) or its key is removed',
    )
  }
  for (const settler of settlers) {
    const sent = await listSent(chain, settler, since)
    const unknown = [...(await rows.listNotBroadcast(ctx.db, sent.hashes))]
    const isRecorded = await record(ctx, chain, settler, unknown)
    isComplete &&= sent.isAgreed && isRecorded
  }
  // A transaction that was confirmed a minute ago is final by now, so it was listed.
  if (isComplete) await finishReconciling(ctx, network, new Date(time.getTime() - 60_000))
}

/** Records those that are payments or refunds. False if too few providers report the same about one of them. */
async function record(
  ctx: Context,
  chain: SvmChain,
  settler: string,
  hashes: readonly string[],
): Promise<boolean> {
  const network = chain.network.caip2
  let isComplete = true
  for (const [i, { fact: landed }] of (await readLanded(chain, hashes)).entries()) {
    const hash = hashes[i]
    if (!landed) isComplete = false
    const exact = landed && readExact(landed.transaction, chain.network)
    // Not a payment: settlers also create token accounts.
    if (!hash || !landed || landed.isFailed || !exact || 'refusal' in exact) continue
    const bytes = encodeTransaction(landed.transaction)
    const nonce = hashMessage(landed.transaction.message)
    if (isRefundNonce(exact.memo)) {
      // The fee payer has signed the transaction. It is our refund only if that is the settler.
      if (exact.feePayer === settler) await recordRefund(ctx, network, hash, landed, exact)
      continue
    }
    const [to] = isId('ch', exact.memo) ? await rows.listPayTo(ctx.db, exact.memo, network, exact.mint) : []
    if (!to || (await findTokenAccount(to, exact.mint)) !== exact.destination) continue
    const seen = {
      asset: exact.mint,
      payer: exact.payer,
      nonce,
      to,
      value: exact.amount,
      transactionHash: hash,
      logIndex: 0,
      position: 0,
    }
    await ctx.db.transaction(async (tx) => {
      const signature = `0x${Buffer.from(bytes).toString('hex')}` as const
      const claim = await insertRecovered(tx, network, { seen, signature, checkoutId: exact.memo }, false)
      if (claim) await rows.recordSend(tx, { network, settler, hash, bytes, key: seen })
    })
  }
  return isComplete
}

async function recordRefund(
  ctx: Context,
  network: string,
  hash: string,
  { transaction, ownerOf }: Landed,
  { feePayer: settler, payer, mint: asset, destination, amount, memo: nonce }: ExactTransfer,
): Promise<void> {
  const owner = ownerOf(destination)
  const isOwner = owner !== null && (await findTokenAccount(owner, asset)) === destination
  const bytes = encodeTransaction(transaction)
  const key = { asset, payer, nonce }
  const found = { ...key, network, settler, bytes, recipient: isOwner ? owner : destination, amount }
  await ctx.db.transaction(async (tx) => {
    if (await rows.recoverRefund(tx, found)) await rows.recordSend(tx, { network, settler, hash, bytes, key })
  })
}
