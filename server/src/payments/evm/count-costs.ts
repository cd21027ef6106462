import type { Chain } from '../../chains/evm/chain.ts'
import { readReceipts } from '../../chains/evm/transactions.ts'
import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import { listUncosted, noteCosts, type Settler, type Uncosted } from '../settlers/rows.ts'

/** Receipts per request. */
const receiptsMax = 50

/** The part of a receipt that says what was paid. On the OP Stack, `l1Fee` is the charge for data. */
export type Receipt = {
  readonly gasUsed: Hex
  readonly effectiveGasPrice: Hex
  readonly l1Fee?: Hex
  readonly operatorFeeScalar?: Hex
  readonly operatorFeeConstant?: Hex
}

/**
 * Reads the receipts of a settler's mined transactions to learn their costs: one receipt per batch, not per payment.
 * Returns whether there may be more to read, and the transactions without a receipt.
 */
export async function countCosts(
  ctx: Context,
  chain: Chain,
  { address }: Pick<Settler, 'address'>,
): Promise<{ readonly isMore: boolean; readonly without: readonly Uncosted[] }> {
  const { network } = chain
  const uncosted = await listUncosted(ctx.db, network.caip2, address, receiptsMax)
  const hashes = uncosted.flatMap(({ nonce, hashes }) => hashes.map((hash) => ({ nonce, hash })))
  if (hashes.length === 0) return { isMore: false, without: [] }
  // A false receipt must neither use up a store's allowance nor hide a cost.
  const agreed = await readReceipts(
    chain,
    hashes.map(({ hash }) => hash),
    costIn,
    ({ wei, gas }) => `${wei} ${gas}`,
  )
  const costs = hashes.flatMap(({ nonce, hash }) => {
    const cost = agreed.get(hash)
    return cost ? { nonce, ...cost } : []
  })
  if (costs.length > 0) {
    const noted = await noteCosts(ctx.db, network.caip2, address, costs)
    measure(ctx, network, costs, noted)
  }
  const found = new Set(costs.map(({ nonce }) => nonce))
  const without = uncosted.filter(({ nonce }) => !found.has(nonce))
  return { isMore: without.length > 0 || uncosted.length === receiptsMax, without }
}

/**
 * Adds transactions that were not counted before to the metrics. Metrics are floating-point numbers, so the last digits
 * are lost.
 */
function measure(
  { metrics }: Context,
  { id, nativeCurrency }: Chain['network'],
  costs: readonly { readonly nonce: number; readonly wei: bigint; readonly gas: bigint }[],
  noted: readonly { readonly nonce: number; readonly payments: number }[],
): void {
  const toNumber = (units: bigint) => Number.parseInt(`${units}`, 10)
  for (const { nonce, payments } of noted) {
    const cost = costs.find((one) => one.nonce === nonce)
    if (!cost) continue
    metrics.settlementCost.inc({ network: id }, toNumber(cost.wei) / 10 ** nativeCurrency.decimals)
    if (payments > 0) metrics.paymentGas.observe({ network: id }, toNumber(cost.gas) / payments)
  }
}

/** Null if the transaction is not mined, or the answer is not a receipt. */
function costIn(answer: unknown): { readonly wei: bigint; readonly gas: bigint } | null {
  const receipt = answer as Receipt | null
  const isReceipt = [receipt?.gasUsed, receipt?.effectiveGasPrice].every((hex) =>
    /^0x[0-9a-f]+$/i.test(`${hex}`),
  )
  return receipt && isReceipt ? { wei: costOf(receipt), gas: BigInt(receipt.gasUsed) } : null
}

/** A transaction's cost to its sender: gas, data and the operator's fee. */
export function costOf(receipt: Receipt): bigint {
  const { gasUsed, effectiveGasPrice, l1Fee, operatorFeeScalar, operatorFeeConstant } = receipt
  const gas = BigInt(gasUsed)
  // The formula of the Jovian upgrade.
  const operatorFee = gas * BigInt(operatorFeeScalar ?? '0x0') * 100n + BigInt(operatorFeeConstant ?? '0x0')
  return gas * BigInt(effectiveGasPrice) + BigInt(l1Fee ?? '0x0') + operatorFee
}
