import type { Authorization } from '../chains/evm/eip3009.ts'
import { type ReadSignature, readSignature } from '../chains/evm/signature.ts'
import type { Hex } from '../chains/hex.ts'
import { decodeTransaction, hashMessage, type SvmTransaction } from '../chains/svm/message.ts'
import { memoProgram } from '../chains/svm/transfer.ts'
import { isBoundTo } from './nonces.ts'
import { type SignedCase, signedCases } from './sim/cases.ts'

/**
 * A payment as an x402 client sends it, read from its header. Addresses are in stored form; nothing has been verified
 * yet. A payment is claimed by (network, asset, payer, nonce).
 */
type AnyPayment = {
  readonly scheme: string
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  readonly payer: string
  readonly nonce: Hex
  /** The client's own id for this payment (extension payment-identifier). */
  readonly identifier: string | null
}

export type EvmPayment = AnyPayment &
  ReadSignature & {
    readonly family: 'EVM'
    readonly asset: Hex
    readonly authorization: Authorization
  }

export type SvmPayment = AnyPayment & {
  readonly family: 'SOLANA'
  readonly transaction: SvmTransaction
}

/** Nothing is signed on the simulated network: the payer says what becomes of the payment. */
type SimulatedPayment = AnyPayment & {
  readonly family: 'SIMULATED'
  readonly what: SignedCase
}

export type Payment = EvmPayment | SvmPayment | SimulatedPayment

export type ReadPayment =
  | {
      readonly kind: 'none'
      /** Why the header that was sent instead is not read. */
      readonly error?: string
    }
  | { readonly kind: 'unreadable'; readonly why: string }
  | {
      readonly kind: 'present'
      readonly payment: Payment
      /** What a link offered (links/quote.ts), as it came back in the terms that were accepted. Not authenticated yet. */
      readonly quote: string | null
    }

/**
 * Parses PAYMENT-SIGNATURE. Node joins repeated headers with a comma, and its base64 decoder skips unknown characters,
 * so two parsers could read one header as two different payments. Only canonical base64 is accepted: text that equals
 * the encoding of its own bytes.
 */
export function readPaymentHeader(
  header: string | readonly string[] | undefined,
  version1Header?: string | readonly string[],
): ReadPayment {
  if (header === undefined) return version1Header === undefined ? { kind: 'none' } : version1
  if (typeof header !== 'string') return unreadable('it was sent more than once')
  const bytes = Buffer.from(header, 'base64')
  if (header === '' || bytes.toString('base64') !== header) return unreadable('it is not standard base64')
  let json: unknown
  try {
    json = JSON.parse(bytes.toString())
  } catch {
    return unreadable('it is not JSON')
  }
  return readPayload(json)
}

/** X-PAYMENT is version 1's header. It is not read, so the request is answered as one without a payment. */
const version1: ReadPayment = {
  kind: 'none',
  error:
    'X-PAYMENT is a header of x402 version 1 and was not read. Sign these version 2 terms and send the payment in PAYMENT-SIGNATURE.',
}

function readPayload(json: unknown): ReadPayment {
  const root = asRecord(json)
  if (root?.x402Version !== 2) return unreadable('x402Version must be 2')
  const accepted = asRecord(root.accepted)
  const payload = asRecord(root.payload)
  if (!accepted || !payload) return unreadable('accepted or payload is missing')
  const identifier = readIdentifier(root.extensions)
  if (identifier === undefined)
    return unreadable('payment-identifier must be 16 to 128 characters from A-Z, a-z, 0-9, _ and -')
  if (payload.simulated !== undefined) return readSimulated(accepted, payload.simulated, identifier)
  return payload.transaction === undefined
    ? readAuthorization(accepted, payload, identifier)
    : readTransaction(accepted, payload.transaction, identifier)
}

type Fields = Record<string, unknown>

function readAuthorization(accepted: Fields, payload: Fields, identifier: string | null): ReadPayment {
  const fields = asRecord(payload.authorization)
  if (!fields) return unreadable('payload.authorization is missing')
  const asset = asHex(accepted.asset, 20)
  const from = asHex(fields.from, 20)
  const to = asHex(fields.to, 20)
  const nonce = asHex(fields.nonce, 32)
  const value = asInteger(fields.value)
  const validAfter = asInteger(fields.validAfter)
  const validBefore = asInteger(fields.validBefore)
  const read = readSignature(payload.signature)
  const scheme = asName(accepted.scheme)
  const network = asName(accepted.network)
  if (scheme === null || network === null || !asset) {
    return unreadable('accepted must have scheme, network and asset')
  }
  if (!from || !to || !nonce || value === null || validAfter === null || validBefore === null) {
    return unreadable(
      'payload.authorization must have valid from, to, value, validAfter, validBefore and nonce',
    )
  }
  if ('refusal' in read) return unreadable(`payload.signature ${read.refusal}`)
  return {
    kind: 'present',
    quote: readQuote(accepted),
    payment: {
      family: 'EVM',
      scheme,
      network,
      asset,
      payer: from,
      nonce,
      authorization: { from, to, value, validAfter, validBefore, nonce },
      ...read,
      identifier,
    },
  }
}

/** A transaction that the payer has signed and that still needs the fee payer's signature. */
function readTransaction(accepted: Fields, encoded: unknown, identifier: string | null): ReadPayment {
  const scheme = asName(accepted.scheme)
  const network = asName(accepted.network)
  const asset = asName(accepted.asset)
  if (scheme === null || network === null || asset === null)
    return unreadable('accepted must have scheme, network and asset')
  const bytes = typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : null
  const transaction = bytes?.toString('base64') === encoded && bytes ? decodeTransaction(bytes) : null
  // The payer is the second required signer or, if there is no second, the fee payer.
  const payer = transaction?.accounts[transaction.signatures.length > 1 ? 1 : 0]
  if (!transaction || !payer) return unreadable('payload.transaction must be a base64-encoded transaction')
  const nonce = hashMessage(transaction.message)
  return {
    kind: 'present',
    quote: readQuote(accepted),
    payment: { family: 'SOLANA', scheme, network, asset, payer, nonce, identifier, transaction },
  }
}

function readSimulated(accepted: Fields, simulated: unknown, identifier: string | null): ReadPayment {
  const fields = asRecord(simulated)
  const scheme = asName(accepted.scheme)
  const network = asName(accepted.network)
  const asset = asName(accepted.asset)
  const payer = asName(fields?.payer)
  const nonce = asHex(fields?.nonce, 32)
  const what = signedCases.find((each) => each === fields?.case)
  if (scheme === null || network === null || asset === null)
    return unreadable('accepted must have scheme, network and asset')
  if (payer === null || !nonce || what === undefined)
    return unreadable(
      `payload.simulated must have payer, nonce and one of these as case: ${signedCases.join(', ')}`,
    )
  return {
    kind: 'present',
    quote: readQuote(accepted),
    payment: { family: 'SIMULATED', scheme, network, asset, payer, nonce, identifier, what },
  }
}

/** An invented one is refused like one that is out of date, so its form needs no error of its own. */
function readQuote({ extra }: Fields): string | null {
  const quote = asRecord(extra)?.quote
  return typeof quote === 'string' && /^[\w.-]{1,1000}$/.test(quote) ? quote : null
}

/** The identifier; null if absent, undefined if malformed. */
function readIdentifier(extensions: unknown): string | null | undefined {
  const info = asRecord(asRecord(asRecord(extensions)?.['payment-identifier'])?.info)
  if (info?.id === undefined || info.id === null) return null
  return typeof info.id === 'string' && /^[A-Za-z0-9_-]{16,128}$/.test(info.id) ? info.id : undefined
}

/** Whether the signed data names this checkout, so that the payment cannot have been meant for another. */
export function isBoundPayment(payment: Payment, checkoutId: string): boolean {
  switch (payment.family) {
    case 'EVM':
      return isBoundTo(payment.nonce, checkoutId)
    case 'SOLANA':
      return payment.transaction.instructions.some(
        ({ program, data }) => program === memoProgram && Buffer.from(data).toString() === checkoutId,
      )
    case 'SIMULATED':
      return false
  }
}

function unreadable(why: string): ReadPayment {
  return { kind: 'unreadable', why }
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

/**
 * Longer than any scheme, token or CAIP-2 id. The values go into database queries, and the database cannot store every
 * character.
 */
function asName(value: unknown): string | null {
  return typeof value === 'string' && /^[\x21-\x7e]{1,64}$/.test(value) ? value : null
}

function asHex(value: unknown, bytes: number): Hex | null {
  if (typeof value !== 'string' || value.length !== 2 + bytes * 2 || !/^0x[0-9a-fA-F]*$/.test(value))
    return null
  return value.toLowerCase() as Hex
}

/** A decimal integer below 2^256, in canonical form. */
function asInteger(value: unknown): bigint | null {
  if (typeof value !== 'string' || !/^(0|[1-9]\d{0,77})$/.test(value)) return null
  const integer = BigInt(value)
  return integer < 2n ** 256n ? integer : null
}
