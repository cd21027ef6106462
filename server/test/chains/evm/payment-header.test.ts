import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import { x402Client } from '@x402/core/client'
import { encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { privateKeyToAccount } from 'viem/accounts'
import { newPayer, paymentHeader, type Signed } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'

const chain = await openChain()

test('paymentHeader is byte for byte what the stock x402 client sends', async () => {
  const { key, address } = newPayer()
  const required: PaymentRequired = {
    x402Version: 2,
    resource: {
      url: 'https://farthing.example/api/v1/checkouts/ch_1',
      description: '',
      mimeType: 'text/plain',
    },
    accepts: [
      {
        scheme: 'exact',
        network: chain.network.caip2,
        asset: chain.token,
        amount: '1500000',
        payTo: address,
        maxTimeoutSeconds: 60,
        extra: { name: chain.domain.name, version: chain.domain.version },
      },
    ],
  }
  const stock = new x402Client()
    .register('eip155:31337', new ExactEvmScheme(privateKeyToAccount(key)))
    .setSpendControls(false)
  const payload = await stock.createPaymentPayload(
    required as Parameters<typeof stock.createPaymentPayload>[0],
  )
  const { authorization } = payload.payload as Signed
  const validBefore = BigInt(authorization.validBefore)
  const header = await paymentHeader(required, key, { nonce: authorization.nonce, validBefore })
  assert.equal(header, encodePaymentSignatureHeader(payload))
  assert(validBefore > BigInt(Math.floor(Date.now() / 1000)))
})
