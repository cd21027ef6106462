import { parseTransaction } from 'viem/utils'
import type { Chain } from '../../chains/evm/chain.ts'
import { multicall } from '../../chains/evm/multicall.ts'
import { isHeld, isUnfunded } from '../../chains/evm/refusals.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { broadcast } from '../settlers/broadcast.ts'
import { insertReplacement, type Unmined } from '../settlers/rows.ts'
import { cappedFees, fillFees, raisedFees } from './fees.ts'

type Sender = { readonly chain: Chain; readonly signer: Signer }

/** Sending the same bytes again is cheap, and nodes forget transactions. */
const resendSeconds = 3
/** Not mined for five blocks: the fee was too low. */
const replaceSeconds = 10

/** Looks after transactions in flight. Only the lowest nonce can be stuck; the others wait for it. */
export async function tend(
  ctx: Context,
  sender: Sender,
  unmined: readonly Unmined[],
  baseFee: bigint,
): Promise<void> {
  for (const [i, transaction] of unmined.entries()) {
    const isReplaced =
      i === 0 &&
      transaction.ageSeconds >= replaceSeconds &&
      (await replace(ctx, sender, transaction, baseFee))
    const { sentAgoSeconds } = transaction
    if (!isReplaced && (sentAgoSeconds === null || sentAgoSeconds >= resendSeconds))
      await sendBytes(ctx, sender.chain, transaction)
  }
}

export async function sendBytes(
  ctx: Context,
  { rpc }: Chain,
  { hash, bytes }: { hash: Hex; bytes: Hex },
): Promise<void> {
  await broadcast(
    ctx,
    hash,
    () => rpc.send('eth_sendRawTransaction', [bytes], isHeld),
    (error) => (isHeld(error) ? 'taken' : isUnfunded(error) ? 'unfunded' : 'refused'),
  )
}

/**
 * Signs the same nonce again with a higher fee: the same calls while they are needed, otherwise an empty transaction.
 * False if what is signed already must do.
 */
async function replace(ctx: Context, sender: Sender, old: Unmined, baseFee: bigint): Promise<boolean> {
  const { chain, signer } = sender
  const before = parseTransaction(old.bytes)
  const isFill = !old.isWanted
  const known = {
    maxFeePerGas: before.maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: before.maxPriorityFeePerGas ?? 0n,
  }
  // Bytes that no node has taken outbid nothing: they are signed again only if they are no longer needed, or if the
  // base fee has risen above what they offer.
  const isUseless = (isFill && before.to?.toLowerCase() !== signer.address) || baseFee > known.maxFeePerGas
  const fresh = isFill ? fillFees(chain.network, baseFee) : cappedFees(chain.network, baseFee)
  const fees = old.isTaken
    ? raisedFees(chain.network, known, baseFee, isFill)
    : isUseless && fresh && fresh.maxFeePerGas !== known.maxFeePerGas
      ? fresh
      : null
  if (!fees) return false
  const call = isFill
    ? { to: signer.address, data: '0x' as Hex, gas: 21_000n }
    : { to: before.to ?? multicall, data: before.data ?? '0x', gas: before.gas ?? 0n }
  const signed = await signer.sign(chain, { ...call, ...fees, nonce: old.nonce })
  crashPoint(ctx, isFill ? 'fill-before-commit' : 'replace-before-commit')
  await insertReplacement(ctx.db, {
    network: chain.network.caip2,
    settler: signer.address,
    nonce: old.nonce,
    ...signed,
  })
  crashPoint(ctx, isFill ? 'fill-after-commit' : 'replace-after-commit')
  ctx.log.info(
    { network: chain.network.id, settler: signer.address, nonce: old.nonce, txHash: signed.hash },
    isFill
      ? 'transaction replaced by an empty one: nothing that it carried is needed any more'
      : 'transaction replaced with a higher fee: it was not mined in time',
  )
  await sendBytes(ctx, chain, signed)
  return true
}
