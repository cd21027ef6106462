import type { Context } from '../../context.ts'
import type { Network } from '../../networks.ts'

/** What one provider alone may complete on a network, in units of each token. They are all US dollars. */
export function limitsAlone({ config }: Context, { assets }: Network): Map<string, bigint> {
  return new Map(
    assets.map(({ address, decimals }) => [
      address.toLowerCase(),
      BigInt(config.singleNodeUpTo) * 10n ** BigInt(decimals),
    ]),
  )
}
