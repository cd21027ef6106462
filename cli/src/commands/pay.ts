import { FarthingError } from '@farthing/sdk'
import { type Offer, type PayResult, pay } from '@farthing/sdk/pay'
import { ask } from '../ask.ts'
import { type Command, textOf, UsageError } from '../command.ts'
import { keptInFolder } from '../kept.ts'
import { openWallet } from '../open-wallet.ts'
import { bad, good, paint, type Terminal, wrap } from '../terminal.ts'
import { openWaiting } from '../waiting.ts'

/** The default limit without a prompt. A person who sees and confirms the amount needs no limit. */
const maxUnasked = '1.00'
const maxAsked = '999999999999999'
const exitCodes = { paid: 0, refused: 1, pending: 3 } as const

export const payCommand: Command = {
  name: 'pay',
  arguments: '<checkoutUrl>',
  summary: 'Pay a checkout from the FARTHING_PRIVATE_KEY wallet',
  options: {
    max: {
      type: 'string',
      value: 'amount',
      about: `the most to pay, in USDC; default ${maxUnasked} with --yes`,
    },
    yes: { type: 'boolean', short: 'y', about: 'sign without asking' },
  },
  notes: [
    'Shows what will be signed and asks you to confirm.',
    'Exit codes: 0 paid, 1 refused, 3 outcome not known yet.',
    '',
    'The signature is kept until the outcome is known or it has expired: run the same',
    'command again and it submits the same one. Only one can be used at a time.',
  ],
  async run(call) {
    const { terminal, settings, values, positionals } = call
    if (!values.yes && !terminal.isInteractive)
      throw new UsageError('This is not a terminal, so I can’t ask you. Pass --yes and --max.')
    const max = textOf(call, 'max') ?? (values.yes ? maxUnasked : maxAsked)
    const wallet = await openWallet(
      settings.privateKey ?? '',
      'Set FARTHING_PRIVATE_KEY to the key of the paying wallet',
    )
    const [checkoutUrl = ''] = positionals
    const host = URL.canParse(checkoutUrl) ? new URL(checkoutUrl).host : checkoutUrl
    const kept = keptInFolder(`${settings.stateFolder}/farthing/payments`)
    const waiting = openWaiting(terminal, host)
    let isSigned = false
    waiting.begin()
    const outcome = await pay(checkoutUrl, wallet, {
      max,
      signal: waiting.signal,
      onWait: waiting.hear,
      kept: {
        ...kept,
        async get(url) {
          const earlier = await kept.get(url)
          if (earlier !== undefined) waiting.markSigned()
          return earlier
        },
      },
      async approve(offer) {
        waiting.pause()
        terminal.say(describe(terminal, offer).join('\n'))
        if (!values.yes && !(await ask('Sign and pay?'))) return false
        waiting.beginPaying()
        isSigned = true
        return true
      },
    })
      .catch((error) => {
        if (!waiting.signal.aborted) throw error
        throw new FarthingError({
          code: 'no_answer',
          detail: `No server answers at ${host}. Is Farthing running there, and is the URL right? Nothing was signed.`,
        })
      })
      .finally(waiting.stop)
    const result = withLimitOption(outcome)
    terminal.show(result, () => tell(terminal, result, isSigned))
    return exitCodes[result.outcome]
  },
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
      ['valid', `${accepted.maxTimeoutSeconds} seconds, for this checkout only`],
    ]),
    '',
  ]
}

/** The SDK's message speaks of a limit; here the limit is an option. */
function withLimitOption(result: PayResult): PayResult {
  if (result.outcome !== 'refused' || result.code !== 'over_limit') return result
  return { ...result, detail: `${result.detail} To pay it, pass a higher --max.` }
}

function tell(terminal: Terminal, result: PayResult, isSigned: boolean): string[] {
  switch (result.outcome) {
    case 'paid':
      return [
        good(isSigned ? 'Paid' : 'Already paid'),
        '',
        ...terminal.facts([
          ['checkout', result.checkout.id],
          ['paid by', result.payer],
          ['transaction', result.transaction],
        ]),
      ]
    case 'pending':
      return [
        `${paint('yellow', '…')} The outcome is not known yet. Do not pay in another way.`,
        result.payment === null
          ? '  Another payment of this checkout is being settled.'
          : '  Run the same command again: it submits the same signature.',
      ]
    case 'refused':
      return [
        bad(wrap(result.detail)),
        paint('dim', `  ${wrap(result.code)}`),
        wrap(`  ${afterRefusal(result)}`),
      ]
  }
}

/** Says only what is certain. Only the chain shows whether a signature that the server has was used. */
function afterRefusal({ charged, signedUntil }: PayResult & { outcome: 'refused' }): string {
  if (charged !== null)
    return 'Your money arrived but did not complete the checkout. Do not pay again; contact the store.'
  if (signedUntil === null) return 'Nothing was signed or charged.'
  return Date.parse(signedUntil) > Date.now()
    ? `The server has your signature and could use it until ${signedUntil}. Do not pay in another way before that. The same command submits the same signature again.`
    : 'The signature has expired. If this was not your own Farthing, see whether your wallet has paid before you sign again.'
}
