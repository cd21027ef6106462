/** Pays a checkout with the official x402 client: node stock.ts <checkoutUrl> */
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const [checkoutUrl = ''] = process.argv.slice(2)
const wallet = privateKeyToAccount(process.env.FARTHING_PRIVATE_KEY as `0x${string}`)

const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet))
client.setSpendControls({
  // Without this it refuses anything above one dollar by itself.
  maxAmountPerPayment: '$5',
  // It knows USDC on Base, but not the token of a chain of one's own, as `npm run dev` has. The limit is in units.
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
  // Being settled. Asking again without a payment is safe: it says 409 until the outcome is known, and 200 then.
  process.stdout.write('not known yet\n')
  process.exitCode = 3
} else {
  process.stdout.write(`refused: ${answer.status} ${await answer.text()}\n`)
  process.exitCode = 1
}
