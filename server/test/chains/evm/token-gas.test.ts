/** Our token beside Circle's own: what is measured in gas on ours is meant for theirs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Address } from 'viem'
import type { TestChain } from '../../support/chain/evm.ts'
import { encodeTransfer, newPayer, signAuthorization } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { useCircleToken } from '../../support/chain/use-circle.ts'

process.env.TOKEN_ARTIFACT = ''
const ours = await openChain()
await useCircleToken()
const circles = await openChain()

const units = 1_000_000n
/** How far our token may be from Circle's. */
const shareMax = 0.03

/** More than one payment go through Multicall3. */
const cases = [
  { payments: 1, to: 'a funded wallet' },
  { payments: 25, to: 'a funded wallet' },
  { payments: 150, to: 'a funded wallet' },
  { payments: 1, to: 'fresh wallets' },
  { payments: 150, to: 'fresh wallets' },
] as const

test('the two chains have different tokens at one address', async () => {
  const code = async ({ client, token }: TestChain) => (await client.getCode({ address: token }))?.length
  assert.equal(ours.token, circles.token)
  assert.notEqual(await code(ours), await code(circles))
})

for (const { payments, to } of cases)
  test(`${payments} in a transaction to ${to}: gas per payment is within 3 % of Circle’s token`, async (t) => {
    const [our, circle] = [await measure(ours, payments, to), await measure(circles, payments, to)]
    t.diagnostic(`${Math.round(our)}, Circle's ${Math.round(circle)}`)
    assert(Math.abs(our / circle - 1) <= shareMax, `${our} is not within 3 % of ${circle}`)
  })

/** The gas per payment if as many payers pay in one transaction. */
async function measure(
  chain: TestChain,
  payments: number,
  to: (typeof cases)[number]['to'],
): Promise<number> {
  const funded = newPayer().address
  await chain.mint(funded, units)
  const recipients: Address[] = Array.from({ length: payments }, () =>
    to === 'fresh wallets' ? newPayer().address : funded,
  )
  const payers = recipients.map(newPayer)
  // More than they pay: emptying a balance earns a refund of gas.
  await chain.mint(
    payers.map(({ address }) => address),
    2n * units,
  )
  const validBefore = (await chain.time()) + 600n
  const calls = await Promise.all(
    payers.map(async ({ key }, i) => {
      const recipient = recipients[i] ?? assert.fail()
      const terms = { to: recipient, value: units, validBefore }
      const signed = await signAuthorization({ key, domain: chain.domain, ...terms })
      return { to: chain.token, data: encodeTransfer(signed) }
    }),
  )
  const [single = assert.fail()] = calls
  const receipts = calls.length === 1 ? [await chain.perform(single)] : await chain.performAll(calls)
  assert.deepEqual(
    receipts.map(({ status, logs }) => [status, logs.length]),
    [['success', 2 * calls.length]],
  )
  return Number(receipts[0]?.gasUsed) / calls.length
}
