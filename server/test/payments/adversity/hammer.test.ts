import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { tokenAbi } from '../../support/chain/evm.ts'
import { newPayer, type Payer, paymentHeader } from '../../support/chain/evm-payment.ts'
import { patienceMs } from '../../support/patience.ts'
import { openShop } from '../../support/shop.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

/** Everything as in production: a worker, and one block per second. */
const shop = await openShop()
const { client, token } = shop.chain
const units = 1_000_000n
const windowSeconds = 15
let people = 0

async function pay(checkoutId: string, header: string) {
  return await shop.request({
    method: 'POST',
    url: `/api/v1/checkouts/${checkoutId}`,
    headers: { 'payment-signature': header },
    remoteAddress: `10.0.${(++people >> 8) & 255}.${people & 255}`,
  })
}

/** Wallets with money and ether, whose owner is about to move the money away. */
async function fundMovers(count: number): Promise<Payer[]> {
  const payers = Array.from({ length: count }, newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    units,
  )
  for (const { address } of payers) {
    await client.setBalance({ address, value: 10n ** 18n })
    await client.impersonateAccount({ address })
  }
  return payers
}

async function moveAway({ address }: Payer): Promise<void> {
  const args = ['0x000000000000000000000000000000000000dEaD', units] as const
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args })
  const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 1n }
  await client.sendTransaction({ account: address, to: token, data, gas: 100_000n, chain: null, ...fees })
}

test('a buyer can pay while others hammer the checkout with empty wallets and with money that they move away', async (t) => {
  const figures: { seconds: number; empty: number; moved: number }[] = []
  for (let trial = 0; trial < trials(1, 5); trial++) {
    const buyer = await shop.fund(2n * units)
    const movers = await fundMovers(20)
    const checkoutId = await shop.create('1.00')
    const required = await shop.require(checkoutId)
    let isOver = false
    const counts = { empty: 0, moved: 0 }
    const hammerEmpty = async () => {
      while (!isOver) {
        const answer = await pay(checkoutId, await paymentHeader(required, newPayer().key))
        if (answer.statusCode === 402) counts.empty++
      }
    }
    const hammerMoving = async () => {
      while (!isOver) {
        const mover = movers.pop()
        if (!mover) return
        const validBefore = BigInt(Math.floor(Date.now() / 1_000) + windowSeconds)
        const header = await paymentHeader(required, mover.key, { validBefore })
        const paying = pay(checkoutId, header)
        // As soon as it is claimed, the money leaves, before our send or in the same block.
        const claimed = () =>
          shop.ctx.db.query('select 1 as one from authorizations where payer = $1', [
            mover.address.toLowerCase(),
          ])
        let isDone = false
        void paying.then(() => {
          isDone = true
        })
        while (!isDone && !isOver) {
          if ((await claimed()).length === 0) continue
          await moveAway(mover)
          counts.moved++
          break
        }
        await paying
      }
    }
    const hammers = [hammerEmpty(), hammerEmpty(), hammerEmpty(), hammerMoving()]
    const header = await paymentHeader(required, buyer.key)
    const began = Date.now()
    let answer = await pay(checkoutId, header)
    while (answer.statusCode !== 200 && Date.now() - began < patienceMs)
      answer = await pay(checkoutId, header)
    const seconds = (Date.now() - began) / 1_000
    isOver = true
    await Promise.all(hammers)
    figures.push({ seconds, ...counts })
    assert.equal(answer.statusCode, 200, answer.body)
    assert.equal((await shop.chain.transferLogs({ from: buyer.address })).length, 1)
  }
  t.diagnostic(print(figures))
})

test('the invariants hold after the hammering', async (t) => {
  t.diagnostic(print(await checkInvariants({ db: shop.ctx.db, chain: shop.chain })))
})
