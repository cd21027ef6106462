import { type BuyResult, buy, type Purchase } from '@farthing/sdk/pay'
import { ask } from '../ask.ts'
import { type Call, type Command, textOf, UsageError } from '../command.ts'
import { keptInFolder } from '../kept.ts'
import { openWallet } from '../open-wallet.ts'
import { bad, good, paint, plainLines, type Terminal, wrap } from '../terminal.ts'

/** The default limit without a prompt: calls cost cents. */
const maxUnasked = '0.10'
const maxAsked = '999999999999999'
const exitCodes = { free: 0, paid: 0, refused: 1, pending: 3 } as const

export const buyCommand: Command = {
  name: 'buy',
  arguments: '<url>',
  summary: 'Call a URL and pay for the answer by x402',
  options: {
    data: { type: 'string', short: 'd', value: 'text', about: 'the body to send; makes it a POST' },
    method: { type: 'string', value: 'name', about: 'GET, POST, …' },
    header: {
      type: 'string',
      multiple: true,
      value: 'name:value',
      about: 'a header to send; may be repeated',
    },
    max: {
      type: 'string',
      value: 'amount',
      about: `the most to pay, in USDC; default ${maxUnasked} with --yes`,
    },
    yes: { type: 'boolean', short: 'y', about: 'sign without asking' },
  },
  notes: [
    'Pays on EVM networks from the FARTHING_PRIVATE_KEY wallet.',
    'Shows what will be signed and asks you to confirm.',
    'Exit codes: 0 answered, 1 refused or an error’s status, 3 outcome not known yet.',
    '',
    'The signature is kept until the outcome is known or it has expired: run the same',
    'command again and it sends the same one.',
  ],
  async run(call) {
    const { terminal, settings, values, positionals } = call
    if (!values.yes && !terminal.isInteractive)
      throw new UsageError('This is not a terminal, so I can’t ask you. Pass --yes and --max.')
    const [url = ''] = positionals
    if (!URL.canParse(url)) throw new UsageError(`${url} is not a URL.`)
    const wallet = await openWallet(
      settings.privateKey ?? '',
      'Set FARTHING_PRIVATE_KEY to the key of the paying wallet',
    )
    const body = textOf(call, 'data')
    const method = textOf(call, 'method')
    const request = {
      ...{ url, headers: headersOf(call) },
      ...(method !== undefined && { method }),
      ...(body !== undefined && { body }),
    }
    const result = await buy(request, wallet, {
      max: textOf(call, 'max') ?? (values.yes ? maxUnasked : maxAsked),
      kept: keptInFolder(`${settings.stateFolder}/farthing/purchases`),
      onWait: ({ status }) =>
        terminal.notice({
          code: null,
          detail: `${new URL(url).host} ${status === null ? 'did not answer' : `answered ${status}`}. Sending the same payment again …`,
        }),
      async approve(purchase) {
        terminal.say(describe(terminal, purchase).join('\n'))
        return values.yes === true || (await ask('Sign and pay?'))
      },
    })
    const answer = await readAnswer(result)
    terminal.show(answer, () => tell(terminal, answer))
    return result.outcome === 'free' && (answer.status ?? 0) >= 400 ? 1 : exitCodes[result.outcome]
  },
}

function headersOf({ values }: Call): Record<string, string> {
  const given = Array.isArray(values.header) ? (values.header as string[]) : []
  return Object.fromEntries(
    given.map((line) => {
      const at = line.indexOf(':')
      if (at < 1) throw new UsageError('--header is a name and a value: --header "accept: text/plain".')
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}

function describe(
  terminal: Terminal,
  { amount, asset, accepted, payer, description, url }: Purchase,
): string[] {
  return [
    `${paint('bold', `${amount} ${asset.symbol}`)} on ${asset.networkName}`,
    '',
    ...terminal.facts([
      ['to', accepted.payTo],
      ['from', payer],
      ['for', `${url} ${description}`.trim()],
      ['token', asset.address],
      ['valid', `${accepted.maxTimeoutSeconds} seconds`],
    ]),
    '',
  ]
}

type Answer = Awaited<ReturnType<typeof readAnswer>>

/** The result with the answer's text in place of the response. */
async function readAnswer(result: BuyResult) {
  if (result.outcome === 'pending') return { ...result, status: null, body: null }
  const { response, ...rest } = result
  return { ...rest, status: response?.status ?? null, body: (await response?.text()) ?? null }
}

function tell(terminal: Terminal, answer: Answer): string[] {
  switch (answer.outcome) {
    case 'free':
      return [...plainLines(answer.body ?? ''), '', good(`Answered ${answer.status} without a payment`)]
    case 'paid':
      return [
        ...plainLines(answer.body ?? ''),
        '',
        good('Paid'),
        ...(answer.settlement ? terminal.facts([['transaction', answer.settlement.transaction]]) : []),
      ]
    case 'pending':
      return [
        `${paint('yellow', '…')} The outcome is not known yet. Do not pay in another way.`,
        '  Run the same command again: it sends the same signature.',
      ]
    case 'refused':
      return [
        bad(wrap(answer.detail)),
        paint('dim', `  ${wrap(answer.code)}`),
        wrap(
          answer.signedUntil === null
            ? '  Nothing was signed or charged.'
            : `  The server has your signature and could use it until ${answer.signedUntil}. The same command sends the same signature again.`,
        ),
      ]
  }
}
