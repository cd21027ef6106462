import { createHash } from 'node:crypto'
import type { Authorization, History, Transfer, Violation } from './history.ts'

/** The decimals of every token here. One token is worth one dollar. */
const decimals = 6
/** The first bytes of a nonce that names its checkout: "fthg". */
const mark = '0x66746867'
/** A block's time is in whole seconds. */
const blockSecondMs = 1_000

/**
 * Whether a claimed signature was on the chain before it was claimed and does not name its checkout. Anyone may have
 * copied such a signature, so its money belongs to no checkout until the store decides.
 */
export function isOlderThanClaim({ nonce, claimedAt }: Authorization, { blockTime }: Transfer): boolean {
  return !nonce.startsWith(mark) && blockTime * 1_000 + blockSecondMs <= claimedAt.getTime()
}

/** I17: compares the store's request with the amount and wallet that the buyer sees. */
export function checkTerms({ books, answers }: History): Violation[] {
  const wrong: string[] = []
  const owned = new Set(books.owners.map(({ storeId, wallet }) => `${storeId} ${wallet.toLowerCase()}`))
  for (const { id, storeId, options, reserved } of books.checkouts)
    for (const { payTo } of [...options, ...reserved])
      if (!owned.has(`${storeId} ${payTo.toLowerCase()}`))
        wrong.push(`${id} of ${storeId} is paid at ${payTo}, which that store never registered`)
  const checkouts = new Map(books.checkouts.map((checkout) => [checkout.id, checkout]))
  for (const { kind, status, checkoutId, sent } of answers) {
    const checkout = checkouts.get(checkoutId ?? '')
    if (kind !== 'create' || status !== 201 || !checkout || sent === undefined) continue
    const { priceAmount, priceCurrency } = JSON.parse(sent) as { priceAmount: string; priceCurrency: string }
    if (priceCurrency !== 'USD') continue
    for (const { amount } of checkout.options)
      if (BigInt(amount) !== unitsOf(priceAmount))
        wrong.push(`${checkout.id} asks for ${amount} units, but its store for ${priceAmount} USD`)
  }
  return wrong.map((what) => ({ invariant: 'I17', what }))
}

/**
 * I18. Anyone can copy a signature from the chain. A signature that does not name its checkout pays only the checkout
 * for which it was presented before it was in a block.
 */
export function checkOrigins({ books, chain, presented }: History): Violation[] {
  const wrong: string[] = []
  const first = new Map<string, number>()
  for (const { checkoutId, payer, nonce, sentAt } of presented) {
    const key = `${checkoutId} ${payer} ${nonce}`
    first.set(key, Math.min(first.get(key) ?? Infinity, sentAt.getTime()))
  }
  // A payment that a store accepted for a checkout belongs to it because the store says so.
  const accepted = new Set(
    books.credits.flatMap(({ checkoutId, payer, nonce, acceptedAt }) =>
      acceptedAt === null ? [] : [`${checkoutId} ${payer} ${nonce}`],
    ),
  )
  for (const { checkoutId, payer, nonce } of books.authorizations) {
    const key = `${checkoutId} ${payer} ${nonce}`
    if (checkoutId !== null && !first.has(key) && !accepted.has(key))
      wrong.push(`${checkoutId} has a claim of ${payer} ${nonce}, which was never presented for it`)
  }
  const landed = new Map(chain.transfers.map((transfer) => [`${transfer.from} ${transfer.nonce}`, transfer]))
  for (const { checkoutId, paymentId, payer, nonce, isOrphaned, disposition, acceptedAt } of books.credits) {
    if (checkoutId === null || nonce === null || isOrphaned || disposition !== 'exact' || acceptedAt !== null)
      continue
    const isNamed = nonce.startsWith(mark)
    if (isNamed && !namesCheckout(nonce, checkoutId))
      wrong.push(`${checkoutId} is paid by ${paymentId}, whose nonce names another checkout`)
    const transfer = landed.get(`${payer} ${nonce}`)
    const sentAt = first.get(`${checkoutId} ${payer} ${nonce}`) ?? Infinity
    if (!isNamed && transfer && sentAt >= transfer.blockTime * 1_000 + blockSecondMs)
      wrong.push(`${checkoutId} is paid by ${paymentId}, which was on the chain before it was presented`)
  }
  return wrong.map((what) => ({ invariant: 'I18', what }))
}

function namesCheckout(nonce: string, checkoutId: string): boolean {
  const random = Buffer.from(nonce.slice(10, 34), 'hex')
  const hash = createHash('sha256').update(checkoutId).update(random).digest('hex')
  return nonce.slice(34) === hash.slice(0, 32)
}

function unitsOf(amount: string): bigint {
  const [whole = '0', part = ''] = amount.split('.')
  return BigInt(`${whole}${part.padEnd(decimals, '0')}`)
}
