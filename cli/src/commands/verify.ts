import { readFile } from 'node:fs/promises'
import { formatUnits } from '@farthing/sdk'
import { knownAssets } from '@farthing/sdk/pay'
import {
  type OfferContent,
  type ReceiptContent,
  type Signed,
  type Verified,
  verifyOffer,
  verifyReceipt,
} from '@farthing/sdk/receipts'
import { type Call, type Command, textOf, UsageError } from '../command.ts'
import { bad, good, paint, type Terminal, wrap } from '../terminal.ts'

export const verifyCommand: Command = {
  name: 'verify',
  arguments: '<file>',
  summary: 'Check a signed receipt or offer',
  options: {
    did: { type: 'string', value: 'file', about: 'the host’s did.json, to check without a network' },
    payer: { type: 'string', value: 'address', about: 'the wallet that must have paid' },
    checkout: { type: 'string', value: 'url', about: 'the checkout that it must be for' },
  },
  notes: [
    'The file is what farthing pay --json printed, or its receipt, or a JWS.',
    'Without --did, the keys are fetched from the host that the receipt names.',
    'Anyone can sign receipts of their own host: pass --checkout with the URL you',
    'paid. An id is enough if FARTHING_URL is the host that signs.',
    'Exit codes: 0 genuine, 1 not.',
  ],
  async run(call) {
    const { terminal, positionals } = call
    const [file = ''] = positionals
    const signed = findSigned(await readText(file))
    if (!signed) throw new UsageError(`${file} holds no signed receipt or offer.`)
    const payer = textOf(call, 'payer')
    const resourceUrl = expectedUrl(call, signed)
    const did = await readDid(call)
    const expect = {
      ...(resourceUrl !== undefined && { resourceUrl }),
      ...(payer !== undefined && { payer }),
    }
    const options = { expect, ...(did !== undefined && { did }) }
    const asReceipt = await verifyReceipt(signed, options)
    // A text that is not a receipt may be an offer; a receipt that fails must not be tried as anything else.
    const isReceipt = asReceipt.isValid || asReceipt.code !== 'malformed'
    const result = isReceipt ? asReceipt : await verifyOffer(signed, options)
    terminal.show({ kind: isReceipt ? 'receipt' : 'offer', ...result }, () => tell(terminal, result))
    return result.isValid ? 0 : 1
  },
}

type Result = Verified<ReceiptContent | OfferContent>

async function readText(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read: ${error.code}.`)
  })
}

async function readDid(call: Call): Promise<unknown> {
  const file = textOf(call, 'did')
  if (file === undefined) return undefined
  const document = parse(await readText(file))
  if (document === undefined) throw new UsageError(`${file} is not JSON.`)
  return document
}

/** The signed statement in a file: a JWS, an object that is one, or the result of `farthing pay`. */
function findSigned(text: string): Signed | null {
  const json = parse(text) as { format?: unknown; receipt?: unknown } | undefined
  if (json === undefined)
    return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text.trim()) ? { format: 'jws', signature: text.trim() } : null
  return ((json?.format === 'jws' ? json : json?.receipt) ?? null) as Signed | null
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * The paid URL that the statement must name. An id alone proves nothing, because anyone can sign for a URL of their own
 * host that ends with it: an id stands for a URL at FARTHING_URL's origin. A checkout has two URLs there, and either is
 * accepted.
 */
function expectedUrl(call: Call, signed: Signed): string | undefined {
  const checkout = textOf(call, 'checkout')
  if (checkout === undefined || /^https?:\/\//.test(checkout)) return checkout
  const { url, isUrlGiven } = call.settings
  if (!isUrlGiven || !URL.canParse(url))
    throw new UsageError(
      'An id does not say which host must have signed. Pass --checkout with the checkout’s whole URL, or set FARTHING_URL.',
    )
  const { origin } = new URL(url)
  const claimed = claimedUrl(signed)
  const isThere =
    URL.canParse(claimed) &&
    new URL(claimed).origin === origin &&
    new URL(claimed).pathname.endsWith(`/${checkout}`)
  return isThere ? claimed : `${origin}/…/${checkout}`
}

/** The URL that a statement names, unverified; empty if it names none. */
function claimedUrl({ signature }: Signed): string {
  const [, body = ''] = String(signature).split('.')
  const content = parse(Buffer.from(body, 'base64url').toString()) as { resourceUrl?: unknown } | undefined
  return String(content?.resourceUrl ?? '')
}

function tell(terminal: Terminal, result: Result): string[] {
  if (!result.isValid)
    return [bad(wrap(result.detail)), paint('dim', `  ${result.code}`), '  It proves nothing.']
  const { content, host, keyId } = result
  const facts: [string, string][] = [
    ['amount', amountOf(content)],
    ['to', content.payTo ?? 'not stated'],
    ['for', content.resourceUrl],
  ]
  if (!('issuedAt' in content))
    return [
      good(`Genuine: ${wrap(host)} signed this offer`),
      '',
      ...terminal.facts([...facts, ['until', timeOf(content.validUntil)], ['key', keyId]]),
      '',
      '  It proves what the checkout asks for. It does not prove that anyone paid.',
    ]
  return [
    good(`Genuine: ${wrap(host)} signed this receipt`),
    '',
    ...terminal.facts([
      ...facts,
      ['paid by', content.payer],
      ['transaction', content.transaction ?? 'not stated'],
      ['network', content.network],
      ['signed at', timeOf(content.issuedAt)],
      ['key', keyId],
    ]),
    '',
    `  ${wrap(`It proves: at that time, ${host} stated that this payment paid this checkout and was as final as the store requires.`)}`,
    '',
    `  ${wrap('It does not prove that the person who shows it is the payer, that anything was delivered, or that the money was not returned. To see whether the chain has kept the payment, look up the transaction.')}`,
  ]
}

function amountOf({ network, asset, amount }: ReceiptContent | OfferContent): string {
  if (amount === undefined) return 'not stated'
  const known = knownAssets.find(
    (each) => each.network === network && each.address.toLowerCase() === asset?.toLowerCase(),
  )
  return known && /^\d{1,31}$/.test(amount)
    ? `${formatUnits(BigInt(amount), known.decimals)} ${known.symbol} on ${known.networkName}`
    : `${amount} units of ${asset ?? 'an asset that is not stated'}`
}

function timeOf(seconds: number | undefined): string {
  // The verifier has checked that it is an integer, but not that it is a valid date.
  return seconds === undefined || Math.abs(seconds) > 8.64e12
    ? 'not stated'
    : new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z')
}
