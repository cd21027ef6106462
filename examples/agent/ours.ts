/** Pays a checkout with our client: node ours.ts <checkoutUrl> */
import { pay } from '@farthing/sdk/pay'
import { privateKeyToAccount } from 'viem/accounts'

const [checkoutUrl = ''] = process.argv.slice(2)
const wallet = privateKeyToAccount(process.env.FARTHING_PRIVATE_KEY as `0x${string}`)

// Signs only for this checkout, for a token that it knows, and never for more than this.
const result = await pay(checkoutUrl, wallet, { max: '5.00' })

switch (result.outcome) {
  case 'paid':
    process.stdout.write(`paid in ${result.transaction}\n`)
    break
  case 'refused':
    process.stdout.write(`refused: ${result.detail}\n`)
    process.exitCode = 1
    break
  case 'pending':
    // Run it again later. While the outcome is not known the server asks for no second signature, and `pay` makes none.
    process.stdout.write('not known yet\n')
    process.exitCode = 3
}
