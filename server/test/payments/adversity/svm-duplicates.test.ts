/** One transaction presented again and again, to several processes at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import { createKeyPairSignerFromBytes } from '@solana/kit'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { toFacilitatorSvmSigner } from '@x402/svm'
import { ExactSvmScheme } from '@x402/svm/exact/facilitator'
import { openChain } from '../../support/chain/open.ts'
import { newSettler } from '../../support/chain/svm.ts'
import { svmHeader } from '../../support/chain/svm-payment.ts'
import { svmPayTo } from '../../support/shop.ts'
import { openSvmDeployment } from '../crash/svm-deployment.ts'
import { print, trials } from './size.ts'

const chain = await openChain({ slotMs: 400, network: 'SOLANA_DEVNET' })

test('a transaction sent many times at once to two serve and two work processes is credited once', async (t) => {
  const deployment = await openSvmDeployment(chain, { serves: 2, works: 2, settlers: 2 })
  const payer = await chain.payer()
  const id = await deployment.create()
  const other = await deployment.create()
  const header = await deployment.sign(id, payer)
  const copies = trials(200, 1_000)
  const present = async (i: number) => {
    const [first = '', second = ''] = deployment.addresses()
    // Every tenth request presents it for another checkout.
    const response = await fetch(
      `${i % 2 === 0 ? first : second}/api/v1/checkouts/${i % 10 === 9 ? other : id}`,
      {
        method: 'POST',
        headers: { 'payment-signature': header },
      },
    )
    const body = (await response.json()) as { code?: string; error?: string }
    return {
      isOther: i % 10 === 9,
      said: `${response.status} ${body.code ?? body.error ?? ''}`,
      settlement: response.headers.get('payment-response'),
    }
  }
  const answers = await Promise.all(Array.from({ length: copies }, (_, i) => present(i)))
  const tally = Map.groupBy(answers, ({ said }) => said)
  t.diagnostic(print(Object.fromEntries([...tally].map(([said, all]) => [said, all.length]))))
  const own = answers.filter(({ isOther }) => !isOther)
  assert(own.some(({ said }) => said.startsWith('200')))
  assert(
    own.every(({ said }) => /^(200|202|409 payment_in_progress)/.test(said)),
    [...tally.keys()].join(', '),
  )
  const paid = own.filter(({ said }) => said.startsWith('200'))
  assert.equal(new Set(paid.map(({ settlement }) => settlement)).size, 1)
  assert(answers.every(({ isOther, said }) => !isOther || !said.startsWith('2')))
  assert.equal((await deployment.read(id)).status, 'COMPLETED')
  assert.equal((await deployment.read(other)).status, 'OPEN')
  const rows = await deployment.db.query('select 1 as one from credits')
  assert.equal(rows.length, 1)
  await deployment.check()
})

test('two instances of the reference facilitator accept one transaction for two orders', async () => {
  const settler = await newSettler(chain)
  const payer = await chain.payer()
  const network = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'
  const requirements = {
    scheme: 'exact' as const,
    network,
    asset: chain.mint,
    amount: '1000000',
    payTo: svmPayTo,
    maxTimeoutSeconds: 300,
    extra: { feePayer: settler.address, memo: 'an order' },
  }
  const required: PaymentRequired = {
    x402Version: 2,
    resource: { url: 'https://shop.example/order', description: '', mimeType: 'application/json' },
    accepts: [requirements],
  }
  const header = await svmHeader(chain, required, payer)
  const payload = JSON.parse(Buffer.from(header, 'base64').toString()) as PaymentPayload
  // Each process remembers only its own settlements.
  const facilitators = await Promise.all(
    [1, 2].map(async () => {
      const keys = await createKeyPairSignerFromBytes(settler.secret)
      const signer = toFacilitatorSvmSigner(keys, { defaultRpcUrl: chain.url })
      return new x402Facilitator().register(network, new ExactSvmScheme(signer))
    }),
  )
  const before = (await chain.balance(svmPayTo, chain.mint)) ?? 0n
  const settled = await Promise.all(
    facilitators.map((one) => one.settle(payload, requirements as unknown as PaymentRequirements)),
  )
  assert.deepEqual(
    settled.map(({ success }) => success),
    [true, true],
    JSON.stringify(settled),
  )
  assert.equal(((await chain.balance(svmPayTo, chain.mint)) ?? 0n) - before, 1_000_000n)
})
