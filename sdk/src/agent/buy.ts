import { FarthingError } from '../errors.ts'
import { parseUnits } from '../units.ts'
import { delayMs, readRetryAfter, wait } from '../wait.ts'
import type { PaymentRequired, Settlement } from '../wire.ts'
import { type Asset, knownAssets } from './assets.ts'
import { type EvmSigner, makeNonce, makeTypedData, toHex } from './evm.ts'
import { chooseWay, type Objection, payableIdOf, type Way } from './offer.ts'
import { isSolana, type Signer, signTransfer } from './sign.ts'
import { type KeptPayments, readSigned } from './signed.ts'
import { answerTimeoutMs, type CallOptions, readEncoded, readSettlement, timeoutMsDefault } from './submit.ts'

/**
 * How a program buys the answer to an HTTP request from any server that speaks x402 version 2:
 *
 * 1. Send the request without a payment. Any answer but 402 is the result, and costs nothing.
 * 2. Check the terms: a known token, no more than the limit. Otherwise nothing is signed.
 * 3. Sign once, and store the signature before it is sent.
 * 4. Send the request with it until there is a definite answer. A lost answer, a restart or a second call sends the same
 *    signature and never creates another one. That holds after a refusal too, until the signature has expired: the server
 *    still has it and could use it.
 *
 * Unlike a Farthing checkout, the server decides what the signature is used for: it can move the agreed amount to the
 * agreed address once, whether or not the answer arrives.
 */

export type Buyable = {
  readonly url: string
  /** Default: GET, or POST if there is a body. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Text or bytes, because a request may have to be repeated. */
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** Tells apart purchases that are otherwise equal. Two with the same id, or none, are one purchase. */
  readonly id?: string
}

export type BuyResult =
  | { readonly outcome: 'free'; readonly response: Response }
  | {
      readonly outcome: 'paid'
      readonly response: Response
      /** The transaction that paid; null if the server did not name one. */
      readonly settlement: Settlement | null
    }
  | {
      /** The outcome is not known yet. Do not pay in another way: call `buy` again. */
      readonly outcome: 'pending'
      /** Null while no transaction is known. */
      readonly transaction: string | null
    }
  | {
      readonly outcome: 'refused'
      readonly code: string
      readonly detail: string
      /** The answer to the request with the payment; null if none was sent. */
      readonly response: Response | null
      /** Until this time the signature can move money, whatever the server says; null if none was sent. */
      readonly signedUntil: string | null
    }

/** What is about to be signed. */
export type Purchase = Omit<Way, 'signer'> & {
  /** What the server says this is. Nothing verifies it. */
  readonly description: string
  readonly url: string
}

export type BuyOptions = CallOptions & {
  /** The most to pay, in US dollars: "0.05". */
  readonly max: string
  /** Tokens to pay with, each worth one US dollar. Default: `knownAssets`. */
  readonly assets?: readonly Asset[]
  /** Where signed payments are stored until their outcome is known. Default: this process's memory. */
  readonly kept?: KeptPayments
  /** Called with everything that is about to be signed. If it returns false, nothing is signed. */
  readonly approve?: (purchase: Purchase) => boolean | Promise<boolean>
}

/** A larger answer counts as lost: it is held in memory until it is complete. */
const answerBytesMax = 64 * 1024 * 1024

/** Answers that leave it open whether the request was served: the same request, with the same payment, is sent again. */
const openStatuses: ReadonlySet<number> = new Set([202, 429, 502, 503, 504])

const memory = new Map<string, string>()
const underWay = new Set<string>()

/**
 * Sends a request and pays for its answer, if that has a price, from an EVM wallet. Throws only if nothing was signed: a
 * wrong URL or limit, an unreachable server, or a wallet that would not sign.
 */
export async function buy(
  wanted: string | Buyable,
  signer: Signer | readonly Signer[],
  options: BuyOptions,
): Promise<BuyResult> {
  const request = typeof wanted === 'string' ? { url: wanted } : wanted
  if (payableIdOf(request.url.replace(/[?#].*/, '')) !== null)
    throw new TypeError(`${request.url} is a checkout or a link: use pay().`)
  if (parseUnits(options.max, 6) === null)
    throw new TypeError(`max must be an amount such as "5.00", not ${JSON.stringify(options.max)}.`)
  const signers = [signer].flat()
  const name = await nameOf(request, signers)
  if (underWay.has(name)) return { outcome: 'pending', transaction: null }
  underWay.add(name)
  try {
    return await buyOnce(request, name, signers, options)
  } finally {
    underWay.delete(name)
  }
}

async function buyOnce(
  request: Buyable,
  name: string,
  signers: readonly Signer[],
  options: BuyOptions,
): Promise<BuyResult> {
  const kept = options.kept ?? memory
  const earlier = await kept.get(name)
  if (earlier !== undefined) return await present(request, { name, payment: earlier, kept }, options)

  const asked = await send(request, null, options)
  if (!asked)
    throw new FarthingError({
      code: 'no_answer',
      detail: `${request.url} did not answer. Nothing was signed.`,
      status: null,
    })
  if (asked.status !== 402) return { outcome: 'free', response: asked }
  const required = await readTerms(asked)
  if ('code' in required) return refused(required)
  const limits = { max: options.max, assets: options.assets ?? knownAssets, evmOnly: true }
  const way = chooseWay(required, signers, limits)
  if ('code' in way) return refused(way)
  const { signer, ...terms } = way
  const { domain } = terms.asset
  if (!domain || isSolana(signer))
    return refused({ code: 'unknown_asset', detail: 'Only EVM wallets can buy.' })
  const description = String(required.resource?.description ?? '')
  if (options.approve && !(await options.approve({ ...terms, description, url: request.url })))
    return refused({ code: 'declined', detail: 'The payment was not approved. Nothing was signed.' })
  options.signal?.throwIfAborted()
  const typedData = makeTypedData(terms.accepted, domain, terms.payer, makeNonce(), Date.now())
  const signed = await signTransfer(terms.accepted, typedData, signer as EvmSigner)
  const payment = await keep(kept, name, signed)
  return await present(request, { name, payment, kept }, options)
}

/** The payment to send: another process may have signed one for the same purchase, and only that one is sent. */
async function keep(kept: KeptPayments, name: string, signed: string): Promise<string> {
  if (kept.keep) return await kept.keep(name, signed)
  await kept.set(name, signed)
  return signed
}

type Signed = { readonly name: string; readonly payment: string; readonly kept: KeptPayments }

/**
 * Sends the request with the payment until the answer is definite or the time is up. An answer counts once it is there
 * to its last byte. When the signature has expired, any answer is definite.
 */
async function present(
  request: Buyable,
  { name, payment, kept }: Signed,
  options: BuyOptions,
): Promise<BuyResult> {
  const { usableUntil } = readSigned(payment)
  const end = Date.now() + (options.timeoutMs ?? timeoutMsDefault)
  let transaction: string | null = null
  for (let tries = 1; ; tries++) {
    const response = await sendPaid(request, payment, options)
    const isExpired = Date.now() >= usableUntil
    const settlement = readSettlement(response?.headers.get('payment-response') ?? null)
    transaction = settlement?.transaction || transaction
    // A server that names a transaction but no success has sent it, and does not know what became of it.
    const isSent = response?.status === 402 && Boolean(settlement?.transaction)
    const isOpen = isSent || !response || openStatuses.has(response.status)
    if (response && (!isOpen || isExpired)) {
      if (response.ok && !isOpen) {
        await kept.delete(name)
        return { outcome: 'paid', response, settlement: settlement?.success ? settlement : null }
      }
      if (isExpired) await kept.delete(name)
      const why = await readRefusal(response, settlement)
      return { ...refused(why), response, signedUntil: new Date(usableUntil).toISOString() }
    }
    const delay = delayMs(tries, response ? readRetryAfter(response.headers) : null)
    const isPatient = Date.now() + delay <= end
    if (isPatient) {
      options.onWait?.({ isSigned: true, status: response?.status ?? null, code: null, detail: null })
      await wait(delay, options.signal)
    }
    if (!isPatient || options.signal?.aborted) return { outcome: 'pending', transaction }
  }
}

/** The answer with its whole body, or null. */
async function sendPaid(request: Buyable, payment: string, options: BuyOptions): Promise<Response | null> {
  const response = await send(request, payment, options)
  const body = response?.body && (await readWhole(response.body))
  if (!response || (response.body && !body)) return null
  const { status, statusText, headers } = response
  return new Response(body, { status, statusText, headers })
}

/** Null if it breaks off or is too large. */
async function readWhole(body: ReadableStream<Uint8Array>): Promise<Blob | null> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  try {
    for await (const chunk of body) {
      length += chunk.length
      if (length > answerBytesMax) return null
      chunks.push(chunk as Uint8Array<ArrayBuffer>)
    }
  } catch {
    return null
  }
  return new Blob(chunks)
}

/** Null if there is no answer. */
async function send(
  { url, method, headers, body }: Buyable,
  payment: string | null,
  options: BuyOptions,
): Promise<Response | null> {
  // The seller may work on a paid answer for as long as we would repeat the request.
  const patience = AbortSignal.timeout(
    payment === null ? answerTimeoutMs : Math.max(answerTimeoutMs, options.timeoutMs ?? timeoutMsDefault),
  )
  const call = options.fetch ?? ((at: string | URL | Request, init?: RequestInit) => fetch(at, init))
  try {
    return await call(url, {
      method: methodOf({ method, body }),
      headers: { ...headers, ...(payment !== null && { 'payment-signature': payment }) },
      ...(body !== undefined && { body }),
      // A payment is only for the URL that requested it, never for a redirect's target.
      redirect: 'manual',
      signal: options.signal ? AbortSignal.any([patience, options.signal]) : patience,
    })
  } catch {
    return null
  }
}

/** The terms of version 2 are in a header. */
async function readTerms(response: Response): Promise<PaymentRequired | Objection> {
  const terms = readEncoded(response.headers.get('payment-required'))
  await response.body?.cancel()
  return terms?.x402Version === 2
    ? (terms as unknown as PaymentRequired)
    : { code: 'malformed_terms', detail: 'The server asks for a payment, but not by x402 version 2.' }
}

async function readRefusal(response: Response, settlement: Settlement | null): Promise<Objection> {
  const terms = readEncoded(response.headers.get('payment-required'))
  const { errorReason } = (settlement ?? {}) as { errorReason?: unknown }
  const said = [errorReason, terms?.error].find((one) => typeof one === 'string' && one !== '')
  return response.status === 402
    ? {
        code: String(said ?? 'payment_required'),
        detail: `The payment was refused: ${said ?? 'no reason given'}.`,
      }
    : { code: `http_${response.status}`, detail: `The server answered ${response.status}.` }
}

function refused({ code, detail }: Objection): BuyResult & { outcome: 'refused' } {
  return { outcome: 'refused', code, detail, response: null, signedUntil: null }
}

function methodOf({
  method,
  body,
}: {
  method: string | undefined
  body: Buyable['body'] | undefined
}): string {
  return method?.toUpperCase() ?? (body === undefined ? 'GET' : 'POST')
}

/** What a signature is kept under: short, because it may become the name of a file. */
async function nameOf({ url, method, body, id }: Buyable, signers: readonly Signer[]): Promise<string> {
  // One wallet never pays with the signature of another.
  const payers = signers.map(({ address }) => address)
  const head = JSON.stringify([url, methodOf({ method, body }), id ?? null, body === undefined, payers])
  const text = new TextEncoder()
  const bytes = typeof body === 'string' ? text.encode(body) : (body ?? new Uint8Array())
  const digest = await crypto.subtle.digest('SHA-256', new Uint8Array([...text.encode(head), ...bytes]))
  return `${new URL(url).origin}#${toHex([...new Uint8Array(digest)]).slice(0, 40)}`
}
