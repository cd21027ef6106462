/** Pays a checkout with Farthing's client: node ours.ts <checkoutUrl> */
import { pay } from '@farthing/sdk/pay'
import { verifyReceipt } from '@farthing/sdk/receipts'
import { privateKeyToAccount } from 'viem/accounts'

const [checkoutUrl = ''] = process.argv.slice(2)
const wallet = privateKeyToAccount(process.env.FARTHING_PRIVATE_KEY as `0x${string}`)

// Signs only for this checkout, only a known token, and never more than this amount.
const result = await pay(checkoutUrl, wallet, { max: '5.00' })

switch (result.outcome) {
  case 'paid': {
    process.stdout.write(`paid in ${result.transaction}\n`)
    if (result.receipt === null) break
    // Keep the receipt: it proves that the store's server confirmed this payment for this checkout.
    const { transaction, payer } = result
    const expect = { resourceUrl: checkoutUrl, transaction, payer }
    const verified = await verifyReceipt(result.receipt, { expect })
    process.stdout.write(
      verified.isValid ? `receipt signed by ${verified.host}\n` : `bad receipt: ${verified.detail}\n`,
    )
    break
  }
  case 'refused':
    process.stdout.write(`refused: ${result.detail}\n`)
    process.exitCode = 1
    break
  case 'pending':
    // Run it again later. Until the outcome is known, the server requests no second signature and `pay` creates none.
    process.stdout.write('not known yet\n')
    process.exitCode = 3
}
