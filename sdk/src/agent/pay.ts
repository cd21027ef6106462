import { FarthingError } from '../errors.ts'
import { parseUnits } from '../units.ts'
import type { Checkout, Payment, Signed } from '../wire.ts'
import { type Asset, knownAssets } from './assets.ts'
import { chooseOffer, isLink, type Objection, type Offer, payableIdOf } from './offer.ts'
import { makeOffer, type Signer, signOffer } from './sign.ts'
import { checkoutSignedFor, type KeptPayments, readSigned, withLife } from './signed.ts'
import { type CallOptions, submit, type Verdict } from './submit.ts'

/**
 * How a program pays a checkout or a link, by x402:
 *
 * 1. Request the checkout without a payment. The answer says how to pay, or that it is paid, being paid or expired.
 * 2. Check the terms: this checkout, a known token, no more than the limit. Otherwise nothing is signed.
 * 3. Sign once. A nonce or memo binds the signature to this checkout, and the signature is stored before it is sent.
 * 4. Submit it until its outcome is known. A lost answer, a restart or a second call submits the same signature again
 *    and never creates another one. That holds after a refusal too, until the signature has expired: the server
 *    that refused it still has it and could use it.
 *
 * There are three outcomes, never two: paid, refused, and not known yet.
 */

// biome-ignore lint/performance/noBarrelFile: this file is the package's entry point for payers
export { type Asset, knownAssets } from './assets.ts'
export { type Buyable, type BuyOptions, type BuyResult, buy, type Purchase } from './buy.ts'
export type { EvmSigner, TransferTypedData } from './evm.ts'
export type { Objection, Offer } from './offer.ts'
export type { Signer } from './sign.ts'
export type { KeptPayments } from './signed.ts'
export { type SolanaSigner, solanaSigner } from './solana.ts'
export type { Verdict, Waiting } from './submit.ts'

export type PayResult =
  | {
      readonly outcome: 'paid'
      readonly checkout: Checkout
      readonly transaction: string
      readonly network: string
      /** The wallet that paid. It is someone else's if the checkout was already paid. */
      readonly payer: string
      /** What the server signed as proof of the payment: see `@farthing/sdk/receipts`. Null if it signs none. */
      readonly receipt: Signed | null
    }
  | {
      /** The outcome is not known yet. Do not pay in another way: call `pay` again, or `resume` with this payment. */
      readonly outcome: 'pending'
      /** The signed payment; null if someone else's payment is being settled. */
      readonly payment: string | null
      /** Null while no transaction is known. */
      readonly transaction: string | null
    }
  | {
      readonly outcome: 'refused'
      readonly code: string
      readonly detail: string
      /** The payment that arrived without completing the checkout: contact the store. Null if the server reports none. */
      readonly charged: Payment | null
      /**
       * Until this time the submitted signature can move money, whatever the server says; null if none was submitted.
       * Do not pay in another way before it: calling `pay` again submits the same signature.
       */
      readonly signedUntil: string | null
    }

export type PayOptions = ResumeOptions & {
  /** The most to pay, in US dollars: "5.00". */
  readonly max: string
  /** Called with everything that is about to be signed. If it returns false, nothing is signed. */
  readonly approve?: (offer: Offer) => boolean | Promise<boolean>
  /** Tokens to pay with, each worth one US dollar. Default: `knownAssets`. */
  readonly assets?: readonly Asset[]
}

export type ResumeOptions = CallOptions & {
  /** Where signed payments are stored until their outcome is known. Default: this process's memory. */
  readonly kept?: KeptPayments
}

const memory = new Map<string, string>()
const underWay = new Map<string, Promise<PayResult>>()

/**
 * Pays a checkout exactly once, at its `checkoutUrl`, or a link at its `url`. If a link lets the buyer choose the
 * amount, add it to the URL: `?amount=12.50`. A link for many buyers can be paid again once a payment's outcome is
 * known. Throws only if nothing was signed: a wrong URL or limit, an unreachable server, or a wallet that would not
 * sign. Concurrent calls for one checkout result in one payment. With several signers, it uses the first way to pay
 * that one of them supports.
 */
export async function pay(
  checkoutUrl: string,
  signer: Signer | readonly Signer[],
  options: PayOptions,
): Promise<PayResult> {
  const { url, id } = readAddress(checkoutUrl)
  if (parseUnits(options.max, 6) === null)
    throw new TypeError(`max must be an amount such as "5.00", not ${JSON.stringify(options.max)}.`)
  const twin = underWay.get(url)
  if (twin) return await twin
  const payment = payOnce(url, id, [signer].flat(), options).finally(() => underWay.delete(url))
  underWay.set(url, payment)
  return await payment
}

/** Asks a checkout for its terms or its outcome. Nothing is signed or paid. */
export async function askCheckout(checkoutUrl: string, options: CallOptions = {}): Promise<Verdict> {
  const { url, id } = readAddress(checkoutUrl)
  return await submit(url, id, null, options)
}

/** Finds out the outcome of a payment that was signed earlier by submitting it again. It never signs another one. */
export async function resume(
  checkoutUrl: string,
  payment: string,
  options: ResumeOptions = {},
): Promise<PayResult> {
  const { url, id } = readAddress(checkoutUrl)
  const { header, usableUntil } = readSigned(payment)
  const checkoutId = isLink(id) ? (checkoutSignedFor(header) ?? id) : id
  const result = toResult(await submit(url, checkoutId, header, options), payment)
  if (result.outcome === 'pending') return result
  const isUsable = result.outcome === 'refused' && Date.now() < usableUntil
  if (!isUsable) await (options.kept ?? memory).delete(url)
  return result.outcome === 'refused'
    ? { ...result, signedUntil: new Date(usableUntil).toISOString() }
    : result
}

async function payOnce(
  url: string,
  id: string,
  signers: readonly Signer[],
  options: PayOptions,
): Promise<PayResult> {
  const kept = options.kept ?? memory
  const earlier = await kept.get(url)
  if (earlier !== undefined) return await resume(url, earlier, options)

  const asked = await submit(url, id, null, options)
  if (asked.kind === 'unknown') return notAsked(url, asked, options)
  if (asked.kind !== 'required') return toResult(asked, null)

  const limits = { max: options.max, assets: options.assets ?? knownAssets }
  const chosen = chooseOffer(id, asked.required, signers, limits)
  if ('code' in chosen) return refused(chosen)
  const first = await makeOffer(url, chosen, options)
  if ('code' in first) return refused(first)
  const since = Date.now()
  if (options.approve && !(await options.approve(first)))
    return refused({ code: 'declined', detail: 'The payment was not approved. Nothing was signed.' })
  options.signal?.throwIfAborted()
  // A signature that has not left this process can move no money, so another may take its place.
  const signed = isStale(first, since) ? null : await signOffer(first, chosen.signer)
  const isFresh = signed !== null && !isStale(first, since)
  const offer = isFresh ? first : await makeOffer(url, chosen, options)
  if ('code' in offer) return refused(offer)

  const payment = withLife(isFresh ? signed : await signOffer(offer, chosen.signer), offer)
  await kept.set(url, payment)
  return await resume(url, payment, options)
}

/**
 * A transaction on Solana can be included for about half a minute. If approval and signing took most of that time, it is
 * prepared again, once, with the same terms.
 */
const freshMs = 25_000

function isStale({ transaction }: Offer, since: number): boolean {
  return transaction !== null && Date.now() - since > freshMs
}

/** Nothing was signed. If someone else's payment is in progress, the outcome is pending, with nothing to resume. */
function notAsked(url: string, verdict: Verdict & { kind: 'unknown' }, { signal }: CallOptions): PayResult {
  const { status, code } = verdict.lastAnswer ?? {}
  if (code === 'payment_in_progress' || status === 202)
    return { outcome: 'pending', payment: null, transaction: verdict.transaction }
  signal?.throwIfAborted()
  throw new FarthingError({
    code: code ?? (status === undefined ? 'no_answer' : 'unreadable_answer'),
    detail: `${url} did not say how to pay. Nothing was signed.`,
    status: status ?? null,
  })
}

function toResult(verdict: Verdict, payment: string | null): PayResult {
  switch (verdict.kind) {
    case 'paid': {
      const { transaction, network, payer, extensions } = verdict.settlement
      const receipt = extensions?.['offer-receipt']?.info?.receipt ?? null
      return { outcome: 'paid', checkout: verdict.checkout, transaction, network, payer, receipt }
    }
    case 'required': {
      const { error = 'payment_required' } = verdict.required
      const words = reasons.find(([ending]) => error.endsWith(ending))?.[1]
      return refused({ code: error, detail: words ?? `The payment was refused: ${error}.` })
    }
    case 'refused': {
      const { code, detail } = verdict.problem
      const { payment: charged = null } = verdict.problem as { payment?: Payment }
      return refused({ code, detail }, code === 'payment_not_applied' ? charged : null)
    }
    case 'unknown':
      return { outcome: 'pending', payment, transaction: verdict.transaction }
  }
}

/** Explanations of x402's error reasons, by how the reason ends. */
const reasons: readonly (readonly [ending: string, words: string])[] = [
  ['insufficient_balance', 'The wallet does not hold enough of the token.'],
  ['insufficient_funds', 'The wallet does not hold enough of the token.'],
  ['valid_before', 'The payment window has closed, or this machine’s clock is wrong.'],
  ['valid_after', 'This machine’s clock is wrong.'],
  ['blockhash_expired', 'On Solana a signature is good for half a minute, and this one came too late.'],
  ['quote_outdated', 'The link has changed, or its offer was five minutes old.'],
  ['evm_signature', 'The signature was not made by the wallet.'],
  [
    'undeployed_smart_wallet',
    'The smart wallet is not deployed on this network. Send any transaction from it there, which deploys it, or pay from another wallet.',
  ],
]

function refused({ code, detail }: Objection, charged: Payment | null = null): PayResult {
  return { outcome: 'refused', code, detail, charged, signedUntil: null }
}

function readAddress(address: string): { url: string; id: string } {
  const parsed = URL.canParse(address) ? new URL(address) : null
  const plain = `${parsed?.origin}${parsed?.pathname}`
  const id = payableIdOf(plain)
  if (parsed === null || id === null)
    throw new TypeError(`${JSON.stringify(address)} is not the URL of a checkout or a link.`)
  const amount = isLink(id) ? parsed.searchParams.get('amount') : null
  return { url: amount === null ? plain : `${plain}?${new URLSearchParams({ amount })}`, id }
}
