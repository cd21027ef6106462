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
/** Not mined for five blocks means that the fee was too low. */
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
 * False if no better fee can be offered.
 */
async function replace(ctx: Context, sender: Sender, old: Unmined, baseFee: bigint): Promise<boolean> {
  const { chain, signer } = sender
  const before = parseTransaction(old.bytes)
  const isFill = !old.isWanted
  const known = {
    maxFeePerGas: before.maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: before.maxPriorityFeePerGas ?? 0n,
  }
  // A transaction that no node has accepted outbids nothing. It is signed again only if its payments are no longer
  // needed, or if the base fee has risen above its highest fee.
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
      ? 'transaction replaced by an empty one, because its payments need nothing more'
      : 'transaction replaced with a higher fee, because it was not mined in time',
  )
  await sendBytes(ctx, chain, signed)
  return true
}

/**
 * Uses up a nonce that was taken by a transaction about which nothing is known: a restore lost its bytes, and if the
 * chain or its nodes lost it too, everything behind it would wait forever. Does nothing unless enough nodes agree that
 * they don't have it. If the lost transaction turns up after all, one of the two is mined, and either is fine.
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
    'a settler’s nonce has no transaction, so an empty one uses it up; this is expected after a restore, otherwise find out who changed next_nonce',
  )
  // From here on, the lane tends it like any transaction whose payments need nothing more.
  await insertFill(ctx.db, { network: chain.network.caip2, settler: address, nonce, ...signed })
}

export type Fees = Pick<Unsigned, 'maxFeePerGas' | 'maxPriorityFeePerGas'>

/** The tip per gas, in wei. Base accepts transactions with this tip. */
const tip = 1_000_000n

/** Leaves room for the base fee to double. */
function freshFees(baseFee: bigint): Fees {
  return { maxFeePerGas: baseFee * 2n + tip, maxPriorityFeePerGas: tip }
}

/** Fresh fees, at most the network's cap. Null if base fee and tip alone exceed it. */
export function cappedFees({ maxFeePerGas: cap }: EvmNetwork, baseFee: bigint): Fees | null {
  return baseFee + tip > cap ? null : under(cap, freshFees(baseFee))
}

/** Fresh fees for an empty transaction. If they exceed its cap, it is signed with the cap and waits until fees fall. */
export function fillFees(network: EvmNetwork, baseFee: bigint): Fees {
  return under(fillFeeMax(network), freshFees(baseFee))
}

/**
 * Nodes accept a replacement only if it offers a tenth more. We offer an eighth more, and at least as much as a new
 * transaction. Null above the cap: then the earlier transaction stays. Using up a nonce is worth more than a payment,
 * so an empty transaction has a higher cap.
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

/** Nodes accept a transaction only if the account can pay its highest cost: all its gas at its highest fee. */
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
