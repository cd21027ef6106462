import type { Block, Chain, ChainLog } from '../../chains/evm/chain.ts'
import { readTransfers } from '../../chains/evm/eip3009.ts'
import { readInclusion } from '../../chains/evm/transactions.ts'
import { judge, readAccounts } from '../../chains/evm/witnesses.ts'
import type { Hex } from '../../chains/hex.ts'
import { readFollower } from '../../chains/rows.ts'
import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import type { SentLookUp, SentRefusal, SentTransfer } from '../rail.ts'

/** Honest providers name one block; each further one costs a question to every provider. */
const blocksMax = 4

/**
 * Looks for the transfer by which a store says it has paid by itself. Receipts only say where to look: the transfer is
 * read from the logs of a block that is final by what was followed, as enough providers tell them. A transfer by
 * authorization is never one of these, so neither a signed refund nor a payment by signature can count again.
 */
export async function findSent(ctx: Context, chain: Chain, sent: SentTransfer): Promise<SentLookUp> {
  try {
    return await lookFor(ctx, chain, sent)
  } catch (error) {
    if (!(error instanceof RpcUnavailableError) && !(error instanceof RpcAnswerError)) throw error
    return { outcome: 'waiting' }
  }
}

async function lookFor(ctx: Context, chain: Chain, sent: SentTransfer): Promise<SentLookUp> {
  const { witnessesMin, caip2 } = chain.network
  const told = await readInclusion(chain, sent.transaction)
  if (told.numbers.length === 0) return { outcome: told.isAbsent ? 'unknown' : 'waiting' }
  const finalized = (await readFollower(ctx.db, caip2))?.finalizedNumber ?? 0
  const numbers = told.numbers.filter((number) => number <= finalized)
  let refusal: SentLookUp = { outcome: 'waiting' }
  for (const number of numbers.slice(0, blocksMax)) {
    const [accounts = []] = await readAccounts(chain, [{ number, hash: null }], false)
    const verdict = judge(accounts, witnessesMin)
    if (verdict.kind !== 'believed' || verdict.toldBy.length < witnessesMin) continue
    const { block } = verdict
    const logs = verdict.logs.filter(({ address }) => address === sent.asset)
    const isIn = logs.some(({ transactionHash }) => transactionHash === sent.transaction)
    // In a block that one provider alone named, a transaction that is not there may be in another.
    if (isIn || told.number === number) {
      const judged = judgeTransfers(logs, block, sent)
      if (judged.outcome === 'found') return judged
      refusal = judged
    }
  }
  return refusal
}

function judgeTransfers(logs: readonly ChainLog[], block: Block, sent: SentTransfer): SentLookUp {
  const { plain, authorized } = readTransfers(logs)
  const isOurs = ({ transactionHash }: { transactionHash: Hex }) => transactionHash === sent.transaction
  const moved = plain.filter(isOurs)
  if (moved.length === 0) return refuse(authorized.some(isOurs) ? 'authorized' : 'no_transfer')
  const received = moved.filter(({ to }) => to === sent.recipient)
  if (received.length === 0) return refuse('other_recipient')
  const exact = received.filter(({ value }) => value === sent.amount)
  if (exact.length === 0) return refuse('other_amount')
  const own = exact.filter(({ payer }) => sent.wallets.includes(payer))
  if (own.length === 0) return refuse('other_wallet')
  // A block's time has no fractions of a second.
  if (block.time.getTime() + 1_000 <= sent.notBefore.getTime()) return refuse('too_old')
  return {
    outcome: 'found',
    block: block.hash,
    places: own.map(({ logIndex }) => logIndex),
    creditedAs: null,
  }
}

function refuse(why: SentRefusal): SentLookUp {
  return { outcome: 'refused', why }
}
