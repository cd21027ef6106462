import type { PaymentRequirements } from '@farthing/sdk'
import { describeForWallets } from '../../../chains/wallet-links.ts'
import type { Option } from '../../../checkouts/checkout.ts'
import type { CheckoutView } from '../../../checkouts/view.ts'
import type { Context } from '../../../context.ts'
import { describeOption } from './summary.ts'

/** What the script needs in order to ask a wallet for a payment. */
export function termsOf(
  ctx: Context,
  view: CheckoutView,
  accepts: readonly PaymentRequirements[],
  page: {
    readonly digest: string
    readonly isPayable: boolean
    readonly chosen: number | null
    readonly now: Date
  },
) {
  const { id, status, options } = view.checkout
  return {
    id,
    digest: page.digest,
    status: status === 'OPEN' && view.isPastExpiry ? 'EXPIRED' : status,
    isPayable: page.isPayable,
    isReturning: view.refunds.some((refund) => refund.status === 'SENT'),
    chosen: page.chosen,
    now: page.now.getTime(),
    options: accepts.flatMap((accepted) => {
      const { network, decimals, name } = describeOption(accepted)
      // Its index on the page, by which the script finds it.
      const place = options.findIndex((option) => isSame(option, accepted))
      if (!network || place === -1) return []
      // The URL of a local chain's node is no secret; other nodes' URLs may contain a key.
      const rpcUrl = network.isLocal ? ctx.config.nodes[network.id]?.[0]?.url : network.publicRpcUrl
      return [{ accepted, place, decimals, name, ...describeForWallets(network, rpcUrl ?? null) }]
    }),
  }
}

function isSame(option: Option, { network, asset, payTo, amount }: PaymentRequirements): boolean {
  return (
    option.network === network && option.asset === asset && option.payTo === payTo && option.amount === amount
  )
}
