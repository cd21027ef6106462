import { getBase58Encoder } from '@solana/kit'
import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import { parseSolanaAddress } from '../../chains/svm/address.ts'
import type { SvmChain } from '../../chains/svm/chain.ts'
import { type Landed, readLanded } from '../../chains/svm/landed.ts'
import { countWith, findWithout, judge, readViews } from '../../chains/svm/status.ts'
import { findTokenAccount, tokenProgram } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import type { SentLookUp, SentRefusal, SentTransfer } from '../rail.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'
import { listUnknown } from './reference-rows.ts'

/** The name of a transaction is its first signature: 64 bytes in base58. */
export function parseSignature(text: string): string | null {
  // 64 bytes are 64 to 88 characters; the limit also bounds the arithmetic.
  if (!/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text)) return null
  return getBase58Encoder().encode(text).length === 64 ? text : null
}

/**
 * Looks for the transfer by which a store says it has paid a refund by itself: one of the transaction's own
 * instructions, ordered by a wallet of the store, between the wallets' own accounts for the token, in a block that
 * enough providers call final. A transaction whose fee a settler paid is a payment or a signed refund, and never counts
 * again.
 */
export async function findSent(ctx: Context, chain: SvmChain, sent: SentTransfer): Promise<SentLookUp> {
  try {
    return await lookFor(ctx, chain, sent)
  } catch (error) {
    if (!(error instanceof RpcUnavailableError) && !(error instanceof RpcAnswerError)) throw error
    return { outcome: 'waiting' }
  }
}

async function lookFor(ctx: Context, chain: SvmChain, sent: SentTransfer): Promise<SentLookUp> {
  const { caip2, witnessesMin } = chain.network
  const { views, isDisputed } = await readViews(
    chain,
    [sent.transaction],
    (_, told) => countWith(told, 0) < told.length,
  )
  if (isDisputed) return { outcome: 'waiting' }
  const { status, isDisputed: isDoubted } = judge(views, 0, witnessesMin)
  if (status === null && countWith(views, 0) === 0 && findWithout(views, 0, null).length >= witnessesMin)
    return { outcome: 'unknown' }
  if (isDoubted || status?.commitment !== 'finalized') return { outcome: 'waiting' }
  if (status.isFailed) return refuse('no_transfer')
  const [read] = await readLanded(chain, [sent.transaction])
  const landed = read?.fact
  if (!landed || landed.slot !== status.slot) return { outcome: 'waiting' }
  const settlers: readonly string[] = await listSettlerAddresses(ctx.db, caip2)
  if (settlers.includes(landed.transaction.accounts[0] ?? '')) return refuse('authorized')
  if ((await listUnknown(ctx.db, caip2, [sent.transaction])).length === 0) return refuse('credited')
  return await judgeTransfers(landed, sent)
}

async function judgeTransfers(landed: Landed, sent: SentTransfer): Promise<SentLookUp> {
  const { asset, amount } = sent
  const destination = await findTokenAccount(sent.recipient, asset)
  const sources = new Map<string, string>()
  // A store has wallets of other families too.
  for (const wallet of sent.wallets)
    if ('address' in parseSolanaAddress(wallet)) sources.set(await findTokenAccount(wallet, asset), wallet)
  const moved = readTransfers(landed)
  if (moved.length === 0) return refuse('no_transfer')
  const received = moved.filter(({ to }) => to === destination)
  if (received.length === 0) return refuse('other_recipient')
  const exact = received.filter(({ units }) => units === amount)
  // Money that went back in the same transaction was not paid.
  if (exact.length === 0 || landed.gainOf(destination) < amount * BigInt(exact.length))
    return refuse('other_amount')
  const own = exact.filter(({ from, by }) => sources.get(from) === by)
  if (own.length === 0) return refuse('other_wallet')
  // A block's time has no fractions of a second.
  if (landed.time.getTime() + 1_000 <= sent.notBefore.getTime()) return refuse('too_old')
  return {
    outcome: 'found',
    block: `${landed.slot}/${sent.transaction}`,
    places: own.map(({ place }) => place),
    // One transaction is one credit here, wherever in it the transfer is.
    creditedAs: 0,
  }
}

/** Transfer and TransferChecked, which names the mint between the two accounts. */
function readTransfers({ transaction }: Landed) {
  return transaction.instructions.flatMap(({ program, accounts, data }, place) => {
    const isChecked = data[0] === 12 && data.length === 10
    if (program !== tokenProgram || !(isChecked || (data[0] === 3 && data.length === 9))) return []
    const [from, to, by] = isChecked ? [accounts[0], accounts[2], accounts[3]] : accounts
    if (!from || !to || !by) return []
    return { place, from, to, by, units: Buffer.from(data).readBigUInt64LE(1) }
  })
}

function refuse(why: SentRefusal): SentLookUp {
  return { outcome: 'refused', why }
}
