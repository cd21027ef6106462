/** Our token against Circle's FiatTokenV2_2: what is measured in gas on ours is meant for theirs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Address } from 'viem'
import { encodeTransfer, newPayer, signAuthorization } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'

const chain = await openChain()
const units = 1_000_000n
/** How far our token may be from Circle's. */
const shareMax = 0.03

/** Gas per payment, measured on Circle's code behind its proxy. More than one go through Multicall3. */
const circle = [
  { payments: 1, to: 'a funded wallet', gas: 86_436 },
  { payments: 25, to: 'a funded wallet', gas: 51_848 },
  { payments: 50, to: 'a funded wallet', gas: 51_006 },
  { payments: 100, to: 'a funded wallet', gas: 50_589 },
  { payments: 150, to: 'a funded wallet', gas: 50_457 },
  { payments: 1, to: 'fresh wallets', gas: 103_560 },
  { payments: 150, to: 'fresh wallets', gas: 72_323 },
] as const

for (const { payments, to, gas } of circle)
  test(`${payments} in a transaction to ${to}: gas per payment is within 3 % of Circle’s token`, async (t) => {
    const funded = newPayer().address
    await chain.mint(funded, units)
    const recipients = Array.from({ length: payments }, () =>
      to === 'fresh wallets' ? newPayer().address : funded,
    )
    const ours = await measure(recipients)
    t.diagnostic(`${Math.round(ours)}, Circle's ${gas}`)
    assert(Math.abs(ours / gas - 1) <= shareMax, `${ours} is not within 3 % of ${gas}`)
  })

/** The gas per payment if a payer each pays these recipients in one transaction. */
async function measure(recipients: readonly Address[]): Promise<number> {
  const payers = recipients.map(newPayer)
  // More than they pay: emptying a balance earns a refund of gas.
  await chain.mint(
    payers.map(({ address }) => address),
    2n * units,
  )
  const validBefore = (await chain.time()) + 600n
  const calls = await Promise.all(
    payers.map(async ({ key }, i) => {
      const to = recipients[i] ?? assert.fail()
      const signed = await signAuthorization({ key, domain: chain.domain, to, value: units, validBefore })
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
