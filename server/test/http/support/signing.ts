import type { RefundTypedData } from '@farthing/sdk'
import type { Address, Hex, TypedDataDefinition } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { TestApp } from '../../support/app.ts'
import { openEvm } from '../../support/chain/evm.ts'
import { until } from '../../support/until.ts'

/**
 * A chain for applications that hand out refunds to sign, and a store's wallet with money on it. Nobody follows the chain:
 * the tip that `follow` writes is where nonces are looked up.
 */
export async function openSigning(key: Hex = generatePrivateKey()) {
  const chain = await openEvm({ network: 'BASE_MAINNET' })
  const wallet = privateKeyToAccount(key)
  await chain.mint(wallet.address as Address, 1_000_000_000n)
  return {
    wallet,
    settings: { BASE_MAINNET_RPC_URLS: `one=${chain.url},two=${chain.url}` },
    async follow({ ctx }: TestApp): Promise<void> {
      const { number, hash, parentHash, timestamp } = await chain.client.getBlock()
      await ctx.db.query(
        `insert into blocks (network, number, hash, parent_hash, block_time)
         values ($1, $2, $3, $4, to_timestamp($5))`,
        [chain.network.caip2, String(number), hash, parentHash, String(timestamp)],
      )
    },
    sign: async ({ types: { EIP712Domain: _, ...types }, ...typedData }: RefundTypedData): Promise<Hex> =>
      await wallet.signTypedData({ ...typedData, types } as unknown as TypedDataDefinition),
  }
}

/** Does the work of lanes and followers by hand: once a refund is signed, its transfer is there. */
export async function completeSigned({ ctx }: TestApp, refundId: string): Promise<void> {
  await until('the refund is signed', async () => {
    const done = await ctx.db.query(
      `update refunds set status = 'COMPLETED', version = version + 1, transaction_hash = '0x' || repeat('5e', 32),
         finality = 'included', completed_at = clock() where id = $1 and status = 'SIGNED' returning id`,
      [refundId],
    )
    return done.length > 0
  })
  ctx.db.wakeUps.send('outcomes')
}
