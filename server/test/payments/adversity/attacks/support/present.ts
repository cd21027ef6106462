import type { TestApp } from '../../../../support/app.ts'
import { atEnd } from '../../../../support/at-end.ts'
import { until } from '../../../../support/until.ts'
import type { Driven, Prepared } from '../../driven.ts'

/**
 * Presents payments and returns those that were claimed, as soon as each one is claimed or answered. Unlike
 * `present` of the driven shop, it also returns if the service refuses some of them.
 */
export async function presentAny(shop: Driven, payments: readonly Prepared[]): Promise<Prepared[]> {
  atEnd(() => endWaits(shop))
  const answered = new Set<string>()
  for (const payment of payments)
    void shop.pay(payment).then(() => answered.add(payment.signed.authorization.nonce))
  const nonces = payments.map(({ signed }) => signed.authorization.nonce)
  const claimed = new Set<string>()
  await until('each payment claimed or answered', async () => {
    const rows = await shop.ctx.db.query<{ nonce: string }>(
      'select nonce from authorizations where nonce = any($1)',
      [nonces],
    )
    for (const { nonce } of rows) claimed.add(nonce)
    return claimed.union(answered).size === nonces.length
  })
  return payments.filter(({ signed }) => claimed.has(signed.authorization.nonce))
}

/**
 * Makes the service answer all payers who still wait for a settlement, which would otherwise take 25 s and keep the
 * application from closing. A later clock and a new version of their checkouts end the wait.
 */
export async function endWaits({ clock, ctx }: Pick<TestApp, 'clock' | 'ctx'>): Promise<void> {
  clock.now = new Date(Date.now() + 60_000)
  await ctx.db.query("update checkouts set version = version + 1 where status = 'PROCESSING'")
}
