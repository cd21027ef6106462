import { readLanded, type SvmChain } from '../../chains/svm/chain.ts'
import { encodeTransaction, hashMessage } from '../../chains/svm/message.ts'
import { findTokenAccount, readExact } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import { isId } from '../../ids.ts'
import { finishReconciling } from '../restores/reconcile.ts'
import { insertRecovered } from '../restores/rows.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'
import * as rows from './rows.ts'

/** Per request; nodes list the newest first. */
const listedPerRequest = 1_000
const readPerRequest = 50

type Listed = { readonly signature: string; readonly err: unknown; readonly blockTime: number | null }

/**
 * After a restore, finds transactions that our settlers have sent and that the database no longer knows. Each names its
 * checkout in its memo and is recorded as sent for it, if that checkout made exactly this offer; from then on it is
 * watched and credited like any other.
 */
export async function recoverSent(ctx: Context, chain: SvmChain, time: Date): Promise<void> {
  const network = chain.network.caip2
  const since = await rows.readRestorePoint(ctx.db, network)
  if (since === null) return
  for (const settler of await listSettlerAddresses(ctx.db, network)) {
    const hashes = await listSent(chain, settler, since)
    const unknown = [...(await rows.listNotBroadcast(ctx.db, hashes))]
    for (let i = 0; i < unknown.length; i += readPerRequest)
      await record(ctx, chain, settler, unknown.slice(i, i + readPerRequest))
  }
  // A transaction that was confirmed a minute ago is final by now, and was listed.
  await finishReconciling(ctx, network, new Date(time.getTime() - 60_000))
}

async function listSent({ rpc }: SvmChain, settler: string, since: Date): Promise<string[]> {
  const hashes: string[] = []
  let before: string | undefined
  for (;;) {
    const settings = { limit: listedPerRequest, commitment: 'confirmed', ...(before && { before }) }
    const listed = await rpc.call<Listed[]>('getSignaturesForAddress', [settler, settings])
    // A block whose time the node does not know may be a late one.
    const late = listed.filter(({ blockTime }) => blockTime === null || blockTime * 1_000 >= since.getTime())
    hashes.push(...late.filter(({ err }) => err === null).map(({ signature }) => signature))
    before = listed.at(-1)?.signature
    if (listed.length < listedPerRequest || late.length < listed.length) return hashes
  }
}

async function record(
  ctx: Context,
  chain: SvmChain,
  settler: string,
  hashes: readonly string[],
): Promise<void> {
  const network = chain.network.caip2
  for (const [i, landed] of (await readLanded(chain, hashes)).entries()) {
    const hash = hashes[i]
    const exact = landed && readExact(landed.transaction, chain.network)
    // Not a payment: settlers also create token accounts.
    if (!hash || !landed || !exact || 'refusal' in exact) continue
    const bytes = encodeTransaction(landed.transaction)
    const nonce = hashMessage(landed.transaction.message)
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
      const claim = await insertRecovered(tx, network, seen, signature, exact.memo, false)
      if (claim) await rows.recordSend(tx, { network, settler, hash, bytes, key: seen })
    })
  }
}
