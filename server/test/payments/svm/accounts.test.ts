/** A Solana wallet receives each token in a separate account. Without it, nothing can be paid to the wallet. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { address } from '@solana/kit'
import { findTokenAccount } from '../../../src/chains/svm/transfer.ts'
import { createKey } from '../../../src/stores/api-keys.ts'
import { createStore } from '../../../src/stores/create.ts'
import { byOperator } from '../../support/operator.ts'
import { openShop, type SvmShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

async function openStore({ ctx, request }: SvmShop) {
  const store = await createStore(ctx, { name: 'Another shop', mode: 'test' }, ctx.now())
  const { text } = await createKey(ctx, store.id, byOperator, {}, ctx.now())
  const headers = { 'x-api-key': text, 'content-type': 'application/json' }
  const wallets = `/api/v1/stores/${store.id}/wallets`
  return {
    async register(walletAddress: string): Promise<Wallet> {
      const payload = { walletAddress, custodialType: 'NON_CUSTODIAL' }
      const answer = await request({ method: 'POST', url: `${wallets}/solana`, headers, payload })
      assert.equal(answer.statusCode, 201, answer.body)
      return answer.json()
    },
    async wallet(): Promise<Wallet> {
      return (await request({ url: wallets, headers })).json().data[0]
    },
    async create() {
      const payload = { orderId: 'order-1', priceAmount: '1.00', priceCurrency: 'USD' }
      return await request({ method: 'POST', url: '/api/v1/checkouts', headers, payload })
    },
  }
}

test('a wallet without a token account is not payable, says why, and becomes payable once it has one', async () => {
  const shop = await openShop({ network: 'SOLANA_LOCAL' })
  const owner = (await shop.chain.payer()).address
  const store = await openStore(shop)
  const fresh = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'
  const wallet = await store.register(fresh)
  assert.equal(wallet.payable, false)
  assert.match(wallet.unpayableReason ?? '', /no USDC account on Solana yet/)
  const refused = (await store.create()).json()
  assert.equal(refused.code, 'wallet_required')
  assert.match(refused.detail, /^None of the store’s wallets is payable right now/)
  await shop.chain.fund(fresh, { token: [shop.chain.mint, 0n] })
  await shop.ctx.db.query("update token_accounts set checked_at = clock() - interval '1 minute'")
  await until('the wallet is payable', async () => (await store.wallet()).payable)
  assert.equal((await store.wallet()).unpayableReason, null)
  assert.equal((await store.create()).statusCode, 201)
  // A wallet whose account already exists is payable at once.
  assert.equal((await store.register(owner)).payable, true)
  const [row] = await shop.ctx.db.query<{ count: string }>(
    'select count(*) from token_accounts where created_at is not null',
  )
  assert.equal(row?.count, '0')
})

test('settlers create missing accounts, but no more per day than the operator allows', async () => {
  const shop = await openShop({ network: 'SOLANA_LOCAL', settings: { SOLANA_TOKEN_ACCOUNTS_PER_DAY: '1' } })
  const [settler] = shop.signers
  assert(settler)
  const lamports = async () =>
    BigInt((await shop.chain.rpc<{ value: number }>('getBalance', [settler.address])).value)
  const before = await lamports()
  const [first, second] = [await openStore(shop), await openStore(shop)]
  await first.register('4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi')
  // Registration has just checked the account; this makes the next check due now.
  const lookAgain = () =>
    shop.ctx.db.query(
      "update token_accounts set checked_at = clock() - interval '1 minute' where ready_at is null",
    )
  await until('the account is created and found', async () => {
    await lookAgain()
    return (await first.wallet()).payable
  })
  assert.equal(await shop.chain.balance('4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi', shop.chain.mint), 0n)
  const rent = 2_039_280n
  await until('the cost is final', async () => before - (await lamports()) > 0n)
  assert.equal(before - (await lamports()), rent + 5_000n)

  const wallet = await second.register('CktRuQ2mttgRGkXJtyksdKHjUdc2C4TgDzyB98oEzy8')
  assert.equal(wallet.payable, false)
  const slot = shop.chain.slot()
  await lookAgain()
  await until('some blocks went by', async () => shop.chain.slot() > slot + 20)
  assert.equal(await shop.chain.balance('CktRuQ2mttgRGkXJtyksdKHjUdc2C4TgDzyB98oEzy8', shop.chain.mint), null)
  assert.equal(before - (await lamports()), rent + 5_000n)

  // The owner who closes an account keeps its rent, so creating it again counts against the same day.
  const account = await findTokenAccount('4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi', shop.chain.mint)
  const made = shop.chain.account(account)
  assert(made.exists)
  shop.chain.plant({
    ...made,
    data: new Uint8Array(0),
    programAddress: address('11111111111111111111111111111111'),
    space: 0n,
  })
  await shop.ctx.db.query(
    "update token_accounts set ready_at = null, created_at = created_at - interval '3 minutes' where created_at is not null",
  )
  const closedAt = shop.chain.slot()
  await lookAgain()
  await until('some blocks went by', async () => shop.chain.slot() > closedAt + 20)
  assert.equal(before - (await lamports()), rent + 5_000n)
})
