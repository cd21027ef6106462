import { createInterface } from 'node:readline/promises'
import { type Offer, type PayResult, pay, type Signer, solanaSigner } from '@farthing/sdk/pay'
import { type Command, type Settings, textOf, UsageError } from '../command.ts'
import { keptInFolder } from '../kept.ts'
import { bad, good, paint, type Terminal, wrap } from '../terminal.ts'

/** Without anybody to ask, no more than this; a person who sees the amount is a limit already. */
const maxUnasked = '1.00'
const maxAsked = '999999999999999'
const exitCodes = { paid: 0, refused: 1, pending: 3 } as const

export const payCommand: Command = {
  name: 'pay',
  arguments: '<checkoutUrl>',
  summary: 'Pay a checkout with the wallet of FARTHING_PRIVATE_KEY',
  options: {
    max: {
      type: 'string',
      value: 'amount',
      about: `the most to pay, in USDC; ${maxUnasked} with --yes`,
    },
    yes: { type: 'boolean', short: 'y', about: 'sign without asking' },
  },
  notes: [
    'Shows what will be signed, and asks. Exit codes: 0 paid, 1 refused, 3 not known.',
    '',
    'While the outcome is not known the signature is kept: run the same command',
    'again and it is handed in again. A second one is never made.',
  ],
  async run(call) {
    const { terminal, settings, values, positionals } = call
    if (!values.yes && !terminal.isInteractive)
      throw new UsageError('There is nobody to ask here. Give --yes, and --max for the most to pay.')
    const max = textOf(call, 'max') ?? (values.yes ? maxUnasked : maxAsked)
    const wallet = await openWallet(settings)
    let isSigned = false
    let rest = terminal.busy('Asking …')
    const result = await pay(positionals[0] ?? '', wallet, {
      max,
      kept: keptInFolder(`${settings.stateFolder}/farthing/payments`),
      async approve(offer) {
        rest()
        terminal.say(describe(terminal, offer).join('\n'))
        if (!values.yes && !(await ask('Sign and pay?'))) return false
        rest = terminal.busy('Paying …')
        isSigned = true
        return true
      },
    }).finally(() => rest())
    terminal.show(result, () => tell(terminal, result, isSigned))
    return exitCodes[result.outcome]
  },
}

async function openWallet({ privateKey = '' }: Settings): Promise<Signer> {
  if (/^0x[0-9a-fA-F]{64}$/.test(privateKey)) {
    // Large, and needed here alone.
    const { privateKeyToAccount } = await import('viem/accounts')
    return privateKeyToAccount(privateKey as `0x${string}`)
  }
  try {
    return solanaSigner(privateKey.startsWith('[') ? Uint8Array.from(JSON.parse(privateKey)) : privateKey)
  } catch {
    throw new UsageError(
      'Set FARTHING_PRIVATE_KEY to the paying wallet’s key: 0x and 64 hexadecimal digits, or for Solana base58 or the 64 numbers of a key file.',
    )
  }
}

function describe(
  terminal: Terminal,
  { amount, asset, payTo, payer, description, accepted }: Offer,
): string[] {
  return [
    `${paint('bold', `${amount} ${asset.symbol}`)} on ${asset.networkName}`,
    '',
    ...terminal.facts([
      ['to', payTo],
      ['from', payer],
      ['for', description],
      ['token', asset.address],
      ['valid', `${accepted.maxTimeoutSeconds} seconds, for this checkout alone`],
    ]),
    '',
  ]
}

function tell(terminal: Terminal, result: PayResult, isSigned: boolean): string[] {
  switch (result.outcome) {
    case 'paid':
      return [
        good(isSigned ? 'Paid' : 'Paid already'),
        '',
        ...terminal.facts([
          ['checkout', result.checkout.id],
          ['by', result.payer],
          ['in', result.transaction],
        ]),
      ]
    case 'pending':
      return [
        `${paint('yellow', '…')} Not known yet. Do not pay in another way.`,
        result.payment === null
          ? '  Another payment of this checkout is being settled.'
          : '  Run the same command again: it hands in the same signature.',
      ]
    case 'refused':
      return [
        bad(wrap(result.detail)),
        paint('dim', `  ${wrap(result.code)}`),
        result.charged === null
          ? '  Nothing was charged.'
          : '  Your money arrived, but completed nothing. Ask the store; do not pay again.',
      ]
  }
}

async function ask(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const isLeft = new Promise<string>((resolve) => {
    lines.once('SIGINT', () => resolve(''))
    lines.once('close', () => resolve(''))
  })
  try {
    return /^y(es)?$/i.test((await Promise.race([lines.question(`${question} [y/N] `), isLeft])).trim())
  } finally {
    lines.close()
  }
}
