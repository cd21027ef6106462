import { parseTransaction } from 'viem/utils'
import { type AccountNonce, readAgreedNonces, readNextNonces } from '../../chains/evm/accounts.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { multicall } from '../../chains/evm/multicall.ts'
import { fillFeeMax, type Unsigned } from '../../chains/evm/policy.ts'
import { isHeld, isUnfunded } from '../../chains/evm/refusals.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { EvmNetwork } from '../../networks.ts'
import { broadcast } from '../settlers/lane.ts'
import { insertFill, insertReplacement, type Unmined } from '../settlers/rows.ts'
import { fullBatch } from './choose.ts'

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

/**
 * Fills a nonce that was used, but of which nothing is known any more: after a restore its bytes are lost, and if the
 * chain or its nodes lost the transaction too, everything behind it would wait forever. Does nothing unless enough nodes
 * agree that they do not have it. Should the lost bytes turn up after all, one of the two is mined, and either is fine.
 */
export async function fillLost(
  ctx: Context,
  { chain, signer }: { readonly chain: Chain; readonly signer: Signer },
  nonce: number,
  baseFee: bigint,
): Promise<void> {
  const { address } = signer
  const isUnused = ([agreed]: readonly AccountNonce[]) =>
    agreed?.isWitnessed === true && agreed.nonce === nonce
  if (!isUnused(await readAgreedNonces(chain, [address], 'latest'))) return
  if (!isUnused(await readNextNonces(chain, [address]))) return
  const signed = await signer.sign(chain, {
    to: address,
    data: '0x',
    gas: 21_000n,
    nonce,
    ...fillFees(chain.network, baseFee),
  })
  ctx.log.warn(
    { network: chain.network.id, settler: address, nonce, txHash: signed.hash },
    'a settler’s nonce has no transaction, so an empty one fills it: everything behind it would wait. After a restore that is expected; otherwise find out who changed next_nonce',
  )
  // From here on the lane tends it like any other transaction that is no longer needed.
  await insertFill(ctx.db, { network: chain.network.caip2, settler: address, nonce, ...signed })
}

export type Fees = Pick<Unsigned, 'maxFeePerGas' | 'maxPriorityFeePerGas'>

/** The tip per gas, in wei. Base includes transactions that offer this little. */
const tip = 1_000_000n

/** Leaves room for the base fee to double. */
function freshFees(baseFee: bigint): Fees {
  return { maxFeePerGas: baseFee * 2n + tip, maxPriorityFeePerGas: tip }
}

/** Fresh fees under the network's cap. Null while even the base fee and tip are above it. */
export function cappedFees({ maxFeePerGas: cap }: EvmNetwork, baseFee: bigint): Fees | null {
  return baseFee + tip > cap ? null : under(cap, freshFees(baseFee))
}

/** Fresh fees for an empty transaction. Above its cap it is signed anyway, and waits until fees fall. */
export function fillFees(network: EvmNetwork, baseFee: bigint): Fees {
  return under(fillFeeMax(network), freshFees(baseFee))
}

/**
 * Nodes replace a transaction only for a tenth more. We offer an eighth more, and at least what a new one would offer.
 * Null above the cap: what the nodes have must do. Freeing a nonce is worth more than sending payments, so an empty
 * transaction has a higher cap.
 */
export function raisedFees(network: EvmNetwork, before: Fees, baseFee: bigint, isFill: boolean): Fees | null {
  const cap = isFill ? fillFeeMax(network) : network.maxFeePerGas
  const raise = (fee: bigint) => fee + fee / 8n + 1n
  const raised = raise(before.maxFeePerGas)
  if (raised > cap) return null
  const fresh = under(cap, freshFees(baseFee)).maxFeePerGas
  return {
    maxFeePerGas: raised > fresh ? raised : fresh,
    maxPriorityFeePerGas: raise(before.maxPriorityFeePerGas),
  }
}

function under(cap: bigint, { maxFeePerGas, maxPriorityFeePerGas }: Fees): Fees {
  return { maxFeePerGas: maxFeePerGas > cap ? cap : maxFeePerGas, maxPriorityFeePerGas }
}

/** Nodes demand the most that a transaction can cost before they take it: all its gas at the highest fee it offers. */
export function reserveCost(
  network: EvmNetwork,
  baseFee: bigint,
  dataFee: bigint,
  waiting: number,
): bigint | null {
  const fees = cappedFees(network, baseFee)
  if (!fees) return null
  const full = fullBatch.gas * fees.maxFeePerGas + dataFee
  return full + (full * BigInt(waiting)) / BigInt(fullBatch.payments)
}
