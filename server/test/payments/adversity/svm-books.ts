import assert from 'node:assert/strict'
import { findTokenAccount } from '../../../src/chains/svm/transfer.ts'
import type { Database } from '../../../src/database/db.ts'
import type { TestSvm } from '../../support/chain/svm.ts'
import { svmPayTo } from '../../support/shop.ts'

type Listed = { readonly signature: string; readonly err: unknown; readonly memo: string | null }

/**
 * Compares the books with the chain, which it queries itself: every transaction that touched the store's account, and
 * every one that one of our settlers paid for. Throws at the first difference.
 */
export async function checkBooks(
  db: Database,
  chain: TestSvm,
  settlers: readonly { readonly address: string; readonly funded: bigint }[],
): Promise<void> {
  const network = chain.network.caip2
  const list = async (account: string) =>
    await chain.rpc<Listed[]>('getSignaturesForAddress', [account, { commitment: 'confirmed', limit: 1_000 }])
  const paid = (await list(await findTokenAccount(svmPayTo, chain.mint))).filter(({ err }) => err === null)
  const memos = paid.map(({ memo }) => (memo ?? '').replace(/^\[\d+\] /, ''))
  assert.equal(new Set(memos).size, memos.length, 'a checkout was paid twice')

  const credits = await db.query<{ hash: string; checkout_id: string; amount: string; disposition: string }>(
    `select transaction_hash as hash, checkout_id, amount, disposition from credits
     where network = $1 and orphaned_at is null`,
    [network],
  )
  assert.deepEqual(
    credits.map(({ hash, checkout_id }) => `${checkout_id} ${hash}`).sort(),
    paid.map(({ signature }, i) => `${memos[i]} ${signature}`).sort(),
    'the live credits are not exactly the payments on the chain, each for the checkout in its memo',
  )
  assert(credits.every(({ disposition }) => disposition === 'exact'))
  const sum = credits.reduce((all, { amount }) => all + BigInt(amount), 0n)
  assert.equal(await chain.balance(svmPayTo, chain.mint), sum, 'the balance of the store')

  const checkouts = await db.query<{ id: string; status: string; exact: number; open: number }>(
    `select c.id, c.status,
       (select count(*)::integer from credits k where k.checkout_id = c.id and k.orphaned_at is null) as exact,
       (select count(*)::integer from authorizations a where a.checkout_id = c.id and a.state in ('claimed', 'sent')
         and not a.is_credited) as open
     from checkouts c`,
  )
  for (const { id, status, exact, open } of checkouts) {
    assert.equal(status === 'COMPLETED', exact === 1, `${id} is ${status} with ${exact} credits`)
    if (status === 'OPEN') assert.equal(open, 0, `${id} is OPEN while a payment may still land`)
  }

  const known = new Set(
    (await db.query<{ hash: string }>('select hash from broadcasts')).map(({ hash }) => hash),
  )
  for (const { address, funded } of settlers) {
    const signed = await list(address)
    for (const { signature } of signed)
      assert(known.has(signature), `${signature} was sent before it was committed`)
    const { value } = await chain.rpc<{ value: number }>('getBalance', [address, { commitment: 'confirmed' }])
    assert(funded - BigInt(value) <= 30_000n * BigInt(signed.length), 'payments cost more than their bound')
  }
  const gaps = await db.query(
    `select store_id from events where sequence is not null group by store_id having max(sequence) <> count(*)`,
  )
  assert.deepEqual(gaps, [], 'stores whose log has gaps')
}
