/** Pays a checkout with the official x402 client: node stock.ts <checkoutUrl> */
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const [checkoutUrl = ''] = process.argv.slice(2)
const wallet = privateKeyToAccount(process.env.FARTHING_PRIVATE_KEY as `0x${string}`)

const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet))
client.setSpendControls({
  // By default it refuses anything above one dollar.
  maxAmountPerPayment: '$5',
  // It knows USDC on Base, but not the token of a local chain such as that of `npm run dev`. The limit is in units.
  allowedAssets: [
    {
      network: 'eip155:31337',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      maxAmountPerPayment: '5000000',
    },
  ],
})
const fetchAndPay = wrapFetchWithPayment(fetch, client)

const answer = await fetchAndPay(checkoutUrl, { method: 'POST' })

if (answer.status === 200) {
  const settlement = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')
  process.stdout.write(`paid in ${settlement.transaction}\n`)
} else if (answer.status === 202) {
  // Being settled. Requesting it again without a payment is safe: 409 until the outcome is known, 200 once it is paid.
  process.stdout.write('not known yet\n')
  process.exitCode = 3
} else {
  process.stdout.write(`refused: ${answer.status} ${await answer.text()}\n`)
  process.exitCode = 1
}
