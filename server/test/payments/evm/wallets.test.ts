/** Who may pay and how: signatures in every common form, wallets with code, and nonces bound to a checkout. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import {
  type Address,
  concat,
  encodeFunctionData,
  type Hex,
  numberToHex,
  parseSignature,
  serializeCompactSignature,
  signatureToCompactSignature,
} from 'viem'
import { makeBoundNonce } from '../../../src/payments/nonces.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import {
  encodeTransfer,
  newPayer,
  type Payer,
  type Signed,
  signAuthorization,
  signCancellation,
  wrap,
} from '../../support/chain/evm-payment.ts'
import { openShop, payTo } from '../../support/shop.ts'
import {
  alter,
  assertPaid,
  assertRefused,
  decode,
  eventsOf,
  readLog,
  until,
  untilEvent,
  untilRead,
  untilStatus,
} from '../../support/watch.ts'

const shop = await openShop()
/** A chain that mines only when the test says so. */
const held = await openShop({ blockTimeSeconds: null })

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const forms: readonly (readonly [string, (signature: Hex) => Hex])[] = [
  [
    '64 bytes (EIP-2098)',
    (signature) => serializeCompactSignature(signatureToCompactSignature(parseSignature(signature))),
  ],
  [
    'v of 0 or 1',
    (signature) => concat([signature.slice(0, -2) as Hex, `0x${signature.endsWith('1b') ? '00' : '01'}`]),
  ],
  [
    'a high s',
    (signature) => {
      const { r, s, v } = parseSignature(signature)
      return concat([r, numberToHex(order - BigInt(s), { size: 32 }), numberToHex(v === 27n ? 28 : 27)])
    },
  ],
  ['upper-case hex', (signature) => `0x${signature.slice(2).toUpperCase()}`],
]

test('a signature of 64 bytes, with v of 0 or 1, with a high s or in upper case pays like any other', async () => {
  const payers = forms.map(() => newPayer())
  await shop.chain.mint(
    payers.map(({ address }) => address),
    1_000_000_000n,
  )
  await Promise.all(
    forms.map(async ([form, rewrite], i) => {
      const payer = payers[i] ?? newPayer()
      const id = await shop.create()
      const header = alter(await shop.sign(id, payer), ({ payload }) =>
        Object.assign(payload, { signature: rewrite(payload.signature as Hex) }),
      )
      assertPaid(await shop.pay(id, header))
      assert.equal(await shop.chain.balance(payer.address), 999_000_000n, form)
    }),
  )
})

test('a contract wallet (ERC-1271) pays with its owner’s signature, and is refused with a stranger’s', async () => {
  const owner = newPayer()
  const from = await shop.chain.deploy('OwnedWallet', [owner.address])
  await shop.chain.mint(from, 5_000_000n)
  const id = await shop.create()
  const stranger = await shop.sign(id, newPayer(), { from })
  assertRefused(shop, await shop.pay(id, stranger), 'invalid_exact_evm_signature')
  const paid = await shop.pay(id, await shop.sign(id, owner, { from }))
  assertPaid(paid)
  assert.equal(shop.settlementOf(paid).payer, from)
  assert.equal(await shop.chain.balance(from), 4_000_000n)
})

test('an account that delegated to a wallet (EIP-7702) pays if the wallet accepts its key, wrapped or not, and is refused otherwise', async () => {
  const [good, bad] = [await shop.fund(), await shop.fund()]
  await shop.chain.delegate(good, await shop.chain.deploy('OwnedWallet', [good.address]))
  await shop.chain.delegate(bad, await shop.chain.deploy('OwnedWallet', [newPayer().address]))
  const id = await shop.create()
  assertRefused(shop, await shop.pay(id, await shop.sign(id, bad)), 'invalid_exact_evm_signature')
  assertPaid(await shop.pay(id, await shop.sign(id, good)))
  const other = await shop.create()
  const wrapped = async (payer: Payer) =>
    alter(await shop.sign(other, payer), ({ payload }) =>
      Object.assign(payload, { signature: wrap(payload.signature as Hex) }),
    )
  assertRefused(shop, await shop.pay(other, await wrapped(bad)), 'invalid_exact_evm_signature')
  assertPaid(await shop.pay(other, await wrapped(good)))
  assert.deepEqual(
    [await shop.chain.balance(good.address), await shop.chain.balance(bad.address)],
    [998_000_000n, 1_000_000_000n],
  )
})

test('a wallet that burns all its gas is refused and does not keep others from paying', async () => {
  const from = await shop.chain.deploy('BurningWallet')
  await shop.chain.mint(from, 5_000_000n)
  const [id, other] = [await shop.create(), await shop.create()]
  const [refused, paid] = await Promise.all([
    shop.pay(id, await shop.sign(id, newPayer(), { from })),
    shop.pay(other, await shop.sign(other, await shop.fund())),
  ])
  assertRefused(shop, refused, 'invalid_exact_evm_signature')
  assertPaid(paid)
})

test('a nonce bound to a checkout pays that checkout, and every other refuses it before claiming it', async () => {
  const payer = await shop.fund()
  const [id, other] = [await shop.create(), await shop.create()]
  const header = await shop.sign(id, payer, { nonce: makeBoundNonce(id, randomBytes(12)) })
  assertRefused(shop, await shop.pay(other, header), 'nonce_bound_to_another_checkout')
  assertPaid(await shop.pay(id, header))
  assert.equal((await shop.read(other)).status, 'OPEN')
})

/** Sends the payment to the token before it is presented to us. */
async function settleElsewhere(header: string): Promise<void> {
  const { authorization, signature } = decode(header).payload
  const data = encodeTransfer({ authorization, signature } as Signed)
  assert.equal((await shop.chain.perform({ to: shop.chain.token, data })).status, 'success')
}

test('a nonce bound to the checkout but used before it is presented is claimed, and the transfer on the chain completes it', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer, { nonce: makeBoundNonce(id, randomBytes(12)) })
  await settleElsewhere(header)
  const answer = await shop.pay(id, header)
  assertPaid(answer)
  const [log, ...more] = await shop.chain.transferLogs({ from: payer.address, to: payTo })
  assert.equal(more.length, 0)
  assert.equal(shop.settlementOf(answer).transaction, log?.transactionHash)
})

test('an unbound nonce used before it is presented gets 402, and its money is unmatched in the store’s log', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer)
  await settleElsewhere(header)
  assertRefused(shop, await shop.pay(id, header), 'invalid_exact_evm_nonce_already_used')
  assert.equal((await shop.read(id)).status, 'OPEN')
  const event = await until(
    async () =>
      (await readLog(shop)).find(
        ({ type, data }) =>
          type === 'payment.unmatched' && 'payment' in data && data.payment.payer === payer.address,
      ),
    'payment.unmatched',
  )
  assert('payment' in event.data)
  const { amount, disposition, checkoutId } = event.data.payment
  assert.deepEqual(
    { amount, disposition, checkoutId },
    { amount: '1000000', disposition: 'unmatched', checkoutId: null },
  )
})

async function spendOn(to: Address, payer: Payer, nonce: Hex): Promise<Hex> {
  const validBefore = (await held.chain.time()) + 300n
  return encodeTransfer(
    await signAuthorization({
      key: payer.key,
      domain: held.chain.domain,
      to,
      value: 20_000n,
      validBefore,
      nonce,
    }),
  )
}

for (const [what, spend] of [
  [
    'canceled',
    async (payer: Payer, nonce: Hex) => {
      const signature = await signCancellation({ key: payer.key, domain: held.chain.domain, nonce })
      return encodeFunctionData({
        abi: tokenAbi,
        functionName: 'cancelAuthorization',
        args: [payer.address, nonce, signature],
      })
    },
  ],
  ['spent on something else', (payer: Payer, nonce: Hex) => spendOn(newPayer().address, payer, nonce)],
  ['spent on another amount to the store', (payer: Payer, nonce: Hex) => spendOn(payTo, payer, nonce)],
] as const)
  test(`a bound nonce that was ${what} long before it was presented does not hold the checkout forever: 402 in the end`, async () => {
    const payer = await held.fund()
    const id = await held.create()
    const nonce = makeBoundNonce(id, randomBytes(12))
    // The cases before have moved the chain's time ahead of ours.
    const validBefore = (await held.chain.time()) + 60n
    const header = await held.sign(id, payer, { nonce, validBefore })
    await held.chain.perform({ to: held.chain.token, data: await spend(payer, nonce) })
    assert(await held.chain.isNonceUsed(payer.address, nonce))
    const { number } = await held.chain.client.getBlock()
    await held.chain.mine(10)
    await until(
      async () =>
        (await held.ctx.db.query('select 1 as one from followers where safe_number > $1', [Number(number)]))
          .length > 0,
      'the second reading',
    )
    const answer = held.pay(id, header)
    await untilStatus(held, id, 'PROCESSING')
    if ((await held.chain.time()) < validBefore) await held.chain.setNextBlockTimestamp(validBefore)
    await held.chain.mine()
    await untilRead(held)
    await held.chain.mine(9)
    await untilRead(held)
    await held.chain.pass(held.chain.network.negativeSeconds)
    await untilStatus(held, id, 'OPEN')
    assertRefused(held, await answer, 'nonce_spent_elsewhere')
    await untilEvent(held, id, 'checkout.reopened')
    assert.deepEqual(
      (await eventsOf(held, id)).map(({ type }) => type),
      ['checkout.created', 'checkout.processing', 'checkout.reopened'],
    )
  })
