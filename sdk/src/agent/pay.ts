import { FarthingError } from '../errors.ts'
import { parseUnits } from '../units.ts'
import type { Checkout, Payment } from '../wire.ts'
import { type Asset, knownAssets } from './assets.ts'
import { checkoutIdOf, chooseOffer, type Objection, type Offer } from './offer.ts'
import { makeOffer, type Signer, signOffer } from './sign.ts'
import { handIn, type Talk, type Verdict } from './submit.ts'

/**
 * Paying a checkout as a program does, by x402:
 *
 * 1. Ask without a payment. The answer says how to pay, or that it is paid, being paid, or past its time.
 * 2. Check the terms: this checkout, a token that we know, no more than the limit. Nothing is signed otherwise.
 * 3. Sign once. A nonce or memo binds the signature to this checkout, and the signature is kept before it is sent.
 * 4. Hand it in until its fate is known. A lost answer, a restart or a second call leads to the same signature being
 *    handed in again, never to another one.
 *
 * There are three outcomes, never two: paid, refused, and not known yet.
 */

// biome-ignore lint/performance/noBarrelFile: the door of the package names what is behind it
export { type Asset, knownAssets } from './assets.ts'
export type { EvmSigner, TransferTypedData } from './evm.ts'
export type { Objection, Offer } from './offer.ts'
export type { Signer } from './sign.ts'
export { type SolanaSigner, solanaSigner } from './solana.ts'

export type PayResult =
  | {
      readonly outcome: 'paid'
      readonly checkout: Checkout
      readonly transaction: string
      readonly network: string
      /** Who paid. Somebody else, if the checkout was paid before it was this caller's turn. */
      readonly payer: string
    }
  | {
      /** Not known yet. Do not pay in another way: call `pay` again, or `resume` with this payment. */
      readonly outcome: 'pending'
      /** The signed payment; null if it is somebody else's that is being settled. */
      readonly payment: string | null
      /** Null while none is known. */
      readonly transaction: string | null
    }
  | {
      readonly outcome: 'refused'
      readonly code: string
      readonly detail: string
      /** The payment arrived, but completed nothing: the store owes an answer. Null: nothing was charged. */
      readonly charged: Payment | null
    }

export type PayOptions = ResumeOptions & {
  /** The most that may be paid, in dollars of the token: "5.00". */
  readonly max: string
  /** Asked with everything that is about to be signed. If it says no, nothing is. */
  readonly approve?: (offer: Offer) => boolean | Promise<boolean>
  /** Tokens that may be paid with, each worth a dollar. Default: `knownAssets`. */
  readonly assets?: readonly Asset[]
}

export type ResumeOptions = Talk & {
  /** Where signed payments are kept until their fate is known. Default: this process's memory. */
  readonly kept?: KeptPayments
}

/** A Map is one. Keep payments on disk and a program that was killed goes on with the payment that it signed. */
export type KeptPayments = {
  get(checkoutUrl: string): string | undefined | Promise<string | undefined>
  set(checkoutUrl: string, payment: string): unknown
  delete(checkoutUrl: string): unknown
}

const memory = new Map<string, string>()
const underWay = new Map<string, Promise<PayResult>>()

/**
 * Pays a checkout once. Throws only where nothing was signed: a wrong address or limit, a server that cannot be asked,
 * or a wallet that would not sign. Two calls at once for one checkout are one payment. With several signers, the first
 * way to pay that one of them knows is taken.
 */
export async function pay(
  checkoutUrl: string,
  signer: Signer | readonly Signer[],
  options: PayOptions,
): Promise<PayResult> {
  const { url, checkoutId } = readAddress(checkoutUrl)
  if (parseUnits(options.max, 6) === null)
    throw new TypeError(`max must be an amount such as "5.00", not ${JSON.stringify(options.max)}.`)
  const twin = underWay.get(url)
  if (twin) return await twin
  const payment = payOnce(url, checkoutId, [signer].flat(), options).finally(() => underWay.delete(url))
  underWay.set(url, payment)
  return await payment
}

/** Asks what became of a payment that was signed before. It cannot sign another one. */
export async function resume(
  checkoutUrl: string,
  payment: string,
  options: ResumeOptions = {},
): Promise<PayResult> {
  const { url, checkoutId } = readAddress(checkoutUrl)
  const result = toResult(await handIn(url, checkoutId, payment, options), payment)
  if (result.outcome !== 'pending') await (options.kept ?? memory).delete(url)
  return result
}

async function payOnce(
  url: string,
  checkoutId: string,
  signers: readonly Signer[],
  options: PayOptions,
): Promise<PayResult> {
  const kept = options.kept ?? memory
  const earlier = await kept.get(url)
  if (earlier !== undefined) return await resume(url, earlier, options)

  const asked = await handIn(url, checkoutId, null, options)
  if (asked.kind === 'unknown') return notAsked(url, asked, options)
  if (asked.kind !== 'required') return toResult(asked, null)

  const limits = { max: options.max, assets: options.assets ?? knownAssets }
  const chosen = chooseOffer(checkoutId, asked.required, signers, limits)
  if ('code' in chosen) return refused(chosen)
  const offer = await makeOffer(url, chosen, options)
  if ('code' in offer) return refused(offer)
  if (options.approve && !(await options.approve(offer)))
    return refused({ code: 'declined', detail: 'The payment was not approved. Nothing was signed.' })
  options.signal?.throwIfAborted()

  const payment = await signOffer(offer, chosen.signer)
  await kept.set(url, payment)
  return await resume(url, payment, options)
}

/** Nothing was signed. If a payment of somebody's is under way, that is not ours to repeat. */
function notAsked(url: string, verdict: Verdict & { kind: 'unknown' }, { signal }: Talk): PayResult {
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
      const { transaction, network, payer } = verdict.settlement
      return { outcome: 'paid', checkout: verdict.checkout, transaction, network, payer }
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

/** Why a payment is refused, by how x402's reasons end. */
const reasons: readonly (readonly [ending: string, words: string])[] = [
  ['insufficient_balance', 'The wallet holds too little of the token.'],
  ['insufficient_funds', 'The wallet holds too little of the token.'],
  ['valid_before', 'The time to pay it is over, or this machine’s clock is wrong.'],
  ['valid_after', 'This machine’s clock is wrong.'],
  ['blockhash_expired', 'It was signed too late.'],
  ['evm_signature', 'The signature is not the wallet’s.'],
]

function refused({ code, detail }: Objection, charged: Payment | null = null): PayResult {
  return { outcome: 'refused', code, detail, charged }
}

function readAddress(checkoutUrl: string): { url: string; checkoutId: string } {
  const { origin, pathname } = new URL(checkoutUrl)
  const url = `${origin}${pathname}`
  const checkoutId = checkoutIdOf(url)
  if (checkoutId === null) throw new TypeError(`${checkoutUrl} is not the address of a checkout.`)
  return { url, checkoutId }
}
