/** The answers to a payer on Solana, whatever it sends: always the right one, and no fee of ours above its bound. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AccountRole, address, generateKeyPairSigner, type KeyPairSigner } from '@solana/kit'
import { findTokenAccount, memoProgram } from '../../../src/chains/svm/transfer.ts'
import { type Changes, meta, readBlockhash } from '../../support/chain/svm-payment.ts'
import { openShop, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const shop = await openShop({ network: 'SOLANA_LOCAL', settlers: 2 })
const { chain, ctx } = shop
/** Two signatures, and the most that compute may cost. */
const feeMax = 10_000n + 20_000n

const lamportsOf = async (account: string) =>
  BigInt((await chain.rpc<{ value: number }>('getBalance', [account, { commitment: 'processed' }])).value)
const settlersHold = async () => {
  let sum = 0n
  for (const { address: account } of shop.signers) sum += await lamportsOf(account)
  return sum
}

/** Presents a changed payment and expects 402 with this reason, at no cost to anyone. */
async function assertRefused(
  reason: string,
  changes: Changes | ((payer: KeyPairSigner) => Promise<Changes>),
  payer?: KeyPairSigner,
): Promise<void> {
  const by = payer ?? (await chain.payer())
  const id = await shop.create()
  const header = await shop.sign(id, by, typeof changes === 'function' ? await changes(by) : changes)
  const before = [await settlersHold(), await shop.received()]
  const answer = await shop.pay(id, header)
  assert.equal(answer.statusCode, 402, answer.body)
  assert.equal(answer.json().error, reason)
  assert.equal(shop.settlementOf(answer).errorReason, reason)
  assert.deepEqual([await settlersHold(), await shop.received()], before)
  assert.equal((await shop.read(id)).status, 'OPEN')
}

test('a payment completes its checkout, is safe at once, and becomes final', async () => {
  const payer = await chain.payer()
  const id = await shop.create('2.50')
  const before = [await settlersHold(), await shop.received()] as const
  const answer = await shop.pay(id, await shop.sign(id, payer))
  assert.equal(answer.statusCode, 200, answer.body)
  const settlement = shop.settlementOf(answer)
  assert.deepEqual([settlement.success, settlement.payer], [true, payer.address])
  assert.equal((await shop.received()) - before[1], 2_500_000n)
  const spent = before[0] - (await settlersHold())
  assert(spent > 0n && spent <= feeMax, `the fee was ${spent}`)
  const { payment } = await shop.read(id)
  assert.deepEqual(
    { ...payment, finality: null },
    {
      transaction: settlement.transaction,
      payer: payer.address,
      network: chain.network.caip2,
      asset: chain.mint,
      amount: '2500000',
      finality: null,
    },
  )
  await until('the payment is final', async () => (await shop.read(id)).payment.finality === 'finalized')
})

test('the terms name one of our settlers as the fee payer, and the checkout as the memo', async () => {
  const id = await shop.create()
  const [terms, ...others] = (await shop.require(id)).accepts
  assert.deepEqual(others, [])
  assert(terms && 'feePayer' in terms.extra)
  assert.equal(terms.extra.memo, id)
  assert(shop.signers.some((signer) => 'feePayer' in terms.extra && signer.address === terms.extra.feePayer))
  assert.deepEqual((await shop.require(id)).accepts, [terms])
})

test('the same payment twenty times at once: one transfer, and twenty identical answers', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const before = await shop.received()
  const header = await shop.sign(id, payer)
  const answers = await Promise.all(Array.from({ length: 20 }, () => shop.pay(id, header)))
  assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))], [200])
  assert.equal(new Set(answers.map(({ headers }) => headers['payment-response'])).size, 1)
  assert.equal((await shop.received()) - before, 1_000_000n)
})

test('a payment for one checkout does not pay another, even at the same price', async () => {
  const payer = await chain.payer()
  const [id, other] = [await shop.create(), await shop.create()]
  const header = await shop.sign(id, payer)
  assert.equal((await shop.pay(other, header)).json().error, 'invalid_exact_svm_payload_memo_mismatch')
  assert.equal((await shop.pay(id, header)).statusCode, 200)
  assert.equal((await shop.pay(other, header)).statusCode, 409)
})

test('a payload that is not a transaction gets 400 with the terms', async () => {
  const id = await shop.create()
  const required = await shop.require(id)
  for (const transaction of ['', 'AAAA', '!', 7, Buffer.alloc(1_300, 1).toString('base64')]) {
    const payload = { x402Version: 2, payload: { transaction }, accepted: required.accepts[0] }
    const answer = await shop.pay(id, Buffer.from(JSON.stringify(payload)).toString('base64'))
    assert.equal(answer.statusCode, 400, answer.body)
    assert(answer.headers['payment-required'])
  }
})

test('a transfer of another mint is refused', () =>
  assertRefused('invalid_exact_svm_payload_mint_mismatch', {
    mint: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  }))

test('a transfer to another wallet’s account is refused', () =>
  assertRefused('invalid_exact_svm_payload_recipient_mismatch', {
    payTo: 'CktRuQ2mttgRGkXJtyksdKHjUdc2C4TgDzyB98oEzy8',
  }))

test('a transfer to an account of the right wallet that is not its account for the token is refused', () =>
  assertRefused('invalid_exact_svm_payload_recipient_mismatch', { destination: svmPayTo }))

test('a transfer from the store’s account to itself is refused', () =>
  assertRefused('invalid_exact_svm_payload_no_transfer_instruction', async () => {
    const paid = await findTokenAccount(svmPayTo, chain.mint)
    return { source: paid, destination: paid }
  }))

test('a transfer of another amount is refused', () =>
  assertRefused('invalid_exact_svm_payload_amount_mismatch', { amount: 999_999n }))

test('a transfer with other decimals is refused', () =>
  assertRefused('invalid_exact_svm_payload_mint_mismatch', { decimals: 9 }))

test('another checkout’s memo, no memo, or two memos are refused', async () => {
  await assertRefused('invalid_exact_svm_payload_memo_mismatch', { memo: await shop.create() })
  await assertRefused('invalid_exact_svm_payload_memo_count', { memo: null })
  await assertRefused('invalid_exact_svm_payload_memo_count', { more: [memo] })
})

const memo = { programAddress: memoProgram, data: Buffer.from('more') }
const system = address('11111111111111111111111111111111')

test('an unknown fifth instruction is refused', () =>
  assertRefused('invalid_exact_svm_payload_unknown_fifth_instruction', async (payer) => ({
    more: [
      {
        programAddress: system,
        accounts: [meta(payer.address, AccountRole.WRITABLE_SIGNER)],
        data: Buffer.alloc(12),
      },
    ],
  })))

test('too many instructions are refused', () =>
  assertRefused('invalid_exact_svm_payload_transaction_instructions_length', {
    more: [memo, memo, memo, memo],
  }))

test('too many compute units or too high a compute price is refused', async () => {
  await assertRefused(
    'invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction_too_high',
    {
      units: 1_400_000n,
    },
  )
  await assertRefused(
    'invalid_exact_svm_payload_transaction_instructions_compute_price_instruction_too_high',
    {
      price: 5_000_000n,
    },
  )
})

test('the most expensive payment that is accepted costs exactly the allowed fee', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const before = await settlersHold()
  const answer = await shop.pay(id, await shop.sign(id, payer, { units: 200_000n, price: 100_000n }))
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(before - (await settlersHold()), feeMax)
})

test('the fee payer as authority is refused: a settler’s own tokens cannot be spent', async () => {
  const id = await shop.create()
  const [terms] = (await shop.require(id)).accepts
  assert(terms && 'feePayer' in terms.extra)
  const { feePayer } = terms.extra
  await chain.fund(feePayer, { token: [chain.mint, 5_000_000n] })
  await assertRefused('invalid_exact_svm_payload_transaction_fee_payer_transferring_funds', async () => ({
    feePayer,
    authority: feePayer,
  }))
  assert.equal(await chain.balance(feePayer, chain.mint), 5_000_000n)
})

test('a fee payer that is not ours is refused', () =>
  assertRefused('invalid_exact_svm_fee_payer_not_managed_by_facilitator', async () => ({
    feePayer: (await chain.payer()).address,
  })))

test('a third required signer is refused', () =>
  assertRefused('invalid_exact_svm_payload_excessive_signers', async () => ({
    more: [
      {
        ...memo,
        accounts: [meta((await chain.payer()).address, AccountRole.READONLY_SIGNER)],
      },
    ],
  })))

test('someone else’s signature is refused', () =>
  assertRefused('invalid_exact_svm_payload_signature_invalid', async () => ({
    signedBy: await chain.payer(),
  })))

test('too little money, no money, or no token account is refused', async () => {
  await assertRefused('insufficient_funds', {}, await chain.payer(999_999n))
  await assertRefused('insufficient_funds', {}, await chain.payer(0n))
  await assertRefused('insufficient_funds', {}, await generateKeyPairSigner())
})

test('a transfer from someone else’s account is refused', () =>
  assertRefused('invalid_exact_svm_transaction_simulation_failed', async () => ({
    source: await findTokenAccount((await chain.payer()).address, chain.mint),
  })))

test('money already promised to one payment cannot pay another', async () => {
  const payer = await chain.payer(1_500_000n)
  const ids = [await shop.create(), await shop.create()]
  const headers = await Promise.all(ids.map((id) => shop.sign(id, payer)))
  const before = [await settlersHold(), await shop.received()] as const
  const answers = await Promise.all(ids.map((id, i) => shop.pay(id, headers[i])))
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 402])
  assert.equal((await shop.received()) - before[1], 1_000_000n)
  // Each settler may have sent one: the second then failed on the chain and cost a fee.
  assert(before[0] - (await settlersHold()) <= 2n * feeMax)
})

test('an expired blockhash is refused, and a newer one pays', async () => {
  const payer = await chain.payer()
  const blockhash = await readBlockhash(chain)
  chain.mine(160)
  await assertRefused('blockhash_expired', { blockhash }, payer)
  const id = await shop.create()
  assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
})

test('if the store’s account is gone, simulation refuses payments and nothing is charged', async () => {
  const account = await findTokenAccount(svmPayTo, chain.mint)
  const found = chain.account(account)
  assert(found.exists)
  chain.plant({ ...found, data: new Uint8Array(0), programAddress: system, space: 0n })
  try {
    const payer = await chain.payer()
    const id = await shop.create()
    const answer = await shop.pay(id, await shop.sign(id, payer))
    assert.equal(answer.statusCode, 402, answer.body)
    assert.equal(answer.json().error, 'invalid_exact_svm_transaction_simulation_failed')
  } finally {
    chain.plant(found)
  }
})

test('prepare works only for an open checkout; otherwise the answer says why it is closed', async () => {
  const payer = await chain.payer()
  const prepare = async (id: string, by: string = payer.address) =>
    await shop.request({
      method: 'POST',
      url: `/api/v1/checkouts/${id}/prepare`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ network: chain.network.caip2, payer: by }).toString(),
    })
  const id = await shop.create()
  const prepared = await prepare(id)
  assert.equal(prepared.statusCode, 200, prepared.body)
  assert.equal((await prepare(id, memoProgram)).statusCode, 402)
  assert.equal((await prepare(id, 'nobody')).statusCode, 402)
  chain.meddle(() => 'refuse')
  const cut = await prepare(id)
  chain.meddle(null)
  assert.deepEqual([cut.statusCode, cut.json().code], [503, 'settlement_unavailable'])
  assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
  assert.deepEqual([(await prepare(id)).statusCode, (await prepare(id)).json().code], [409, 'already_paid'])
  const canceled = await shop.create()
  await shop.request({
    method: 'POST',
    url: `/api/v1/checkouts/${canceled}/cancel`,
    headers: { 'x-api-key': shop.key },
  })
  const answer = await prepare(canceled)
  assert.deepEqual([answer.statusCode, answer.json().code], [410, 'checkout_canceled'])
})

test('after all this, the settlers have lost no more than the allowed fees', async () => {
  const [row] = await ctx.db.query<{ sends: string }>('select count(*) as sends from transactions')
  const spent = 20_000_000_000n - (await settlersHold())
  assert(spent <= BigInt(row?.sends ?? '0') * feeMax, `${spent} lamports for ${row?.sends} transactions`)
})
