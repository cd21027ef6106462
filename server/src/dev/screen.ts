import { styleText } from 'node:util'
import type { Demo } from './demo.ts'

type Shown = Demo & {
  readonly consoleUrl: string
  readonly passkeyUrl: string | null
  readonly rates: string
}

/** The output of `dev`: one line for each thing that it starts, then commands to try, then a log. 80 columns. */
export function openScreen(out: NodeJS.WriteStream, now: () => Date) {
  const paint = (format: Parameters<typeof styleText>[0], text: string) =>
    styleText(format, text, { stream: out })
  const say = (text: string) => void out.write(`  ${paint('dim', text)}\n`)
  const heading = (text: string) => paint('bold', text)
  const code = (text: string) => paint('cyan', text)

  return {
    say,

    /** Shows that something is in progress, and then how long it took. */
    async step<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
      const began = now().getTime()
      if (out.isTTY) out.write(`  ${paint('dim', '…')} ${name}`)
      try {
        const result = await work()
        const seconds = ((now().getTime() - began) / 1_000).toLocaleString('en', {
          minimumFractionDigits: 1,
          maximumFractionDigits: 1,
        })
        if (out.isTTY) out.write('\r')
        out.write(`  ${paint('green', '✓')} ${name.padEnd(16)}${paint('dim', `${seconds} s`)}\n`)
        return result
      } catch (error) {
        if (out.isTTY) out.write('\n')
        throw error
      }
    },

    show(shown: Shown): void {
      const { baseUrl, key, checkoutUrl, consoleUrl, passkeyUrl, rates } = shown
      const link = (url: string) => paint(['cyan', 'underline'], url)
      const passkey =
        passkeyUrl === null
          ? ''
          : `\n  Some actions ask for a passkey. This link makes one:\n ${link(passkeyUrl)}\n`
      out.write(`
  ${heading('Farthing is running.')} Open your first checkout and pay it with one click:

    ${link(checkoutUrl)}

  ${heading('In a second terminal,')} in this folder:

    ${code('. .dev/env')}

  Create a checkout
    ${code(`CHECKOUT=$(curl -s $FARTHING_URL/api/v1/checkouts \\
      -H "X-API-Key: $FARTHING_API_KEY" -H 'Content-Type: application/json' \\
      -d '{"orderId":"1","priceAmount":"0.50","priceCurrency":"EUR"}' \\
      | node -p 'JSON.parse(fs.readFileSync(0)).checkoutUrl'); echo $CHECKOUT`)}

  Pay it as an agent
    ${code('npx farthing pay $CHECKOUT --yes')}

  Create another, pay it, and kill the worker halfway through
    ${code(`CHECKOUT=$(npx farthing checkout create 2 0.50 --json \\
      | node -p 'JSON.parse(fs.readFileSync(0)).checkoutUrl')
    npx farthing pay $CHECKOUT --yes & sleep 1
    kill -9 $(cat .dev/work.pid); wait $!`)}

  ${heading('API')}    ${baseUrl}/docs/api
  ${heading('Rates')}  ${rates.replaceAll(',', ', ')} per dollar, fixed
  ${heading('Key')} of the demo store:
 ${key}

  ${heading('Console')} of the demo store. The link signs you in, once:
 ${link(consoleUrl)}
${passkey}
  Ctrl-C stops everything. Data and chain are kept in .dev.

`)
    },
  }
}
