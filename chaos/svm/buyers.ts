import { setTimeout as wait } from 'node:timers/promises'
import type { PaymentRequirements } from '@farthing/sdk'
import type { KeyPairSigner } from '@solana/kit'
import { type Changes, svmTransaction, transferWire } from '../../server/test/support/chain/svm-payment.ts'
import {
  anyAddress,
  createOnce,
  type Load,
  payUntilKnown,
  presentedIn,
  type Store,
} from '../harness/buyers.ts'
import type { Random } from '../harness/random.ts'
import { type Ledger, solana } from './ledger.ts'

/** What buyers on Solana share. */
export type SvmLoad = Load & {
  readonly ledger: Ledger
  readonly settlers: readonly string[]
  /** The store that waits until a payment is final. */
  readonly patient: Store
  /** How often each trick was refused. */
  readonly refusedTricks: Map<string, number>
  /** False success answers. */
  readonly falseAnswers: string[]
  /** False refusals. */
  readonly falseRefusals: string[]
}

const signaturesMax = 4
/** The price of every checkout here. */
const priceUnits = 1_000_000n
/** For the fees of those who spend their money elsewhere. */
const feeLamports = 1_000_000_000n
/** A signature this young does not expire by itself: blockhashes live for half a minute here. */
const youngMs = 10_000
/** Reasons for a refusal that are always false here, because buyers have money and sign correctly. */
const untrueReasons = /insufficient_funds|simulation_failed|transaction_failed|signature|mismatch|fee_payer/

type Signed = { readonly header: string; readonly blockhash: string; readonly signedAt: number }

/**
 * A buyer on Solana that behaves as documented: it repeats requests that got no answer about the payment, and signs
 * again only after a 402. Some send everything twice at once, sign twice, hang up and repeat, try to have the settler
 * pay for something else, or present their payment for another checkout.
 */
export async function buyOnSolana(
  load: SvmLoad,
  name: string,
  payer: KeyPairSigner,
  random: Random,
): Promise<void> {
  for (let turn = 0; !load.isOver; turn++) {
    const store = random.pick(load.stores)
    const checkoutId = await create(load, store, `${name}-${turn}`, random)
    if (checkoutId === null) continue
    if (random.isLucky(0.03))
      await spendTwice(load, store, `${name}-${turn}-poor`, random.fork(`poor ${turn}`))
    for (let signatures = 0; signatures < signaturesMax; signatures++) {
      const terms = await payUntilKnown(load, store, checkoutId, random)
      if (terms?.status !== 402) break
      if (random.isLucky(0.1)) await tryTrick(load, store, checkoutId, terms.body, payer, random)
      const signed = await sign(load, payer, terms.body, random)
      if (!signed) break
      load.counts.signed++
      const answer = await present(load, store, checkoutId, terms.body, payer, signed, random)
      if (answer === 'paid') {
        if (random.isLucky(0.05)) await tryElsewhere(load, store, `${name}-${turn}-other`, signed, random)
        break
      }
      if (answer !== 'refused') break
    }
  }
}

/** Pays one checkout of the store that does not wait, without any mischief. False if that was refused. */
export async function payOnce(
  load: SvmLoad,
  order: string,
  payer: KeyPairSigner,
  random: Random,
): Promise<boolean> {
  const store = load.stores.find((one) => one !== load.patient)
  const checkoutId = store ? await create(load, store, order, random) : null
  if (!store || checkoutId === null) return false
  const terms = await payUntilKnown(load, store, checkoutId, random)
  const signed = terms?.status === 402 ? await sign(load, payer, terms.body, random) : null
  const answer = signed && (await payUntilKnown(load, store, checkoutId, random, signed.header))
  if (answer?.status === 200) load.counts.paid++
  return answer?.status === 200
}

async function present(
  load: SvmLoad,
  store: Store,
  checkoutId: string,
  terms: string,
  payer: KeyPairSigner,
  signed: Signed,
  random: Random,
): Promise<'paid' | 'refused' | 'unknown'> {
  if (random.isLucky(0.15)) await hangUp(load, checkoutId, signed.header, random)
  const isTwin = random.isLucky(0.1)
  const rival = random.isLucky(0.1) ? await sign(load, payer, terms, random) : null
  const headers = [signed.header, ...(isTwin ? [signed.header] : []), ...(rival ? [rival.header] : [])]
  const isLooking = random.isLucky(0.15)
  const draw = (i: number) => random.fork(`${load.counts.signed} ${i}`)
  const [answers] = await Promise.all([
    Promise.all(headers.map((header, i) => payUntilKnown(load, store, checkoutId, draw(i), header))),
    isLooking ? wait(200).then(() => payUntilKnown(load, store, checkoutId, draw(headers.length))) : null,
  ])
  const answer = answers.find((one) => one?.status === 200) ?? answers[0]
  if (answer?.status === 200) {
    if (store === load.patient && !(await load.ledger.isFinalized(answer.transaction ?? '')))
      load.falseAnswers.push(`${checkoutId} was answered 200 before ${answer.transaction} was final`)
    load.counts.paid++
    return 'paid'
  }
  if (answer?.status !== 402) return 'unknown'
  load.counts.refused++
  const { error = '' } = JSON.parse(answer.body) as { error?: string }
  if (headers.length === 1 && (untrueReasons.test(error) || (await isExpiredFalsely(load, signed, error)))) {
    load.counts.wronged++
    load.falseRefusals.push(`${checkoutId} was refused with ${error}, which is not so`)
  }
  return 'refused'
}

/** If the ledger still accepts a young blockhash, it was not too old a moment ago. */
async function isExpiredFalsely({ ledger }: SvmLoad, { blockhash, signedAt }: Signed, error: string) {
  if (error !== 'blockhash_expired' || Date.now() - signedAt > youngMs) return false
  return await ledger.isBlockhashValid(blockhash)
}

/** Sends a payment and closes the connection soon after, as a browser does whose tab is closed. */
async function hangUp(load: SvmLoad, checkoutId: string, header: string, random: Random): Promise<void> {
  const url = `http://127.0.0.1:${random.pick(load.ports)}/api/v1/checkouts/${checkoutId}`
  const headers = { 'payment-signature': header, 'x-forwarded-for': anyAddress(random) }
  const signal = AbortSignal.timeout(random.between(5, 500))
  load.presented.push(presentedIn(header, checkoutId, new Date()))
  await fetch(url, { method: 'POST', headers, signal }).then(
    (response) => response.text().catch(() => ''),
    () => {},
  )
}

/** Payments that would cost the settler something else, or pay another account or amount. None may be accepted. */
async function tryTrick(
  load: SvmLoad,
  store: Store,
  checkoutId: string,
  terms: string,
  payer: KeyPairSigner,
  random: Random,
): Promise<void> {
  const settler = random.pick(load.settlers)
  const tricks: Readonly<Record<string, Changes>> = {
    'the settler’s own money': { authority: settler },
    'a fee payer that is no settler': { feePayer: solana.mint },
    'the payer as fee payer': { feePayer: payer.address },
    'too high a fee': { price: 10_000_000n },
    'too many compute units': { units: 1_400_000n },
    'less than the price': { amount: priceUnits - 1n },
    'back to the payer': { payTo: payer.address },
    'the memo of another checkout': { memo: 'ch_00000000000000000000000000' },
    'no memo': { memo: null },
    'another account’s signature': { signedBy: await load.ledger.newPayer(0n) },
  }
  const [kind, changes] = random.pick(Object.entries(tricks))
  const signed = await sign(load, payer, terms, random, changes)
  const answer = signed && (await payUntilKnown(load, store, checkoutId, random, signed.header))
  if (answer?.status === 200) load.falseAnswers.push(`${checkoutId} was paid by a trick: ${kind}`)
  if (answer?.status === 402) load.refusedTricks.set(kind, (load.refusedTricks.get(kind) ?? 0) + 1)
}

/** Presents an accepted payment for a second checkout of the same store, which it must not pay too. */
async function tryElsewhere(load: SvmLoad, store: Store, order: string, { header }: Signed, random: Random) {
  const checkoutId = await create(load, store, order, random)
  const answer = checkoutId && (await payUntilKnown(load, store, checkoutId, random, header))
  if (answer && answer.status === 200) load.falseAnswers.push(`${checkoutId} was paid by another’s payment`)
}

/**
 * A payer with money for one checkout pays two at the same time, or pays one and sends the money elsewhere meanwhile, so
 * that the payment fails on the ledger.
 */
async function spendTwice(load: SvmLoad, store: Store, order: string, random: Random): Promise<void> {
  const isSent = random.isLucky(0.5)
  const payer = await load.ledger.newPayer(priceUnits, feeLamports)
  const halves = isSent ? ['a'] : ['a', 'b']
  await Promise.all([
    ...halves.map(async (half) => {
      const draw = random.fork(half)
      const checkoutId = await create(load, store, `${order}-${half}`, draw)
      const terms = checkoutId && (await payUntilKnown(load, store, checkoutId, draw))
      const signed = terms && terms.status === 402 && (await sign(load, payer, terms.body, draw))
      if (signed) await payUntilKnown(load, store, checkoutId, draw, signed.header)
    }),
    isSent ? wait(random.between(100, 1_000)).then(() => sendAway(load, payer)) : null,
  ])
}

async function sendAway({ ledger }: SvmLoad, payer: KeyPairSigner): Promise<void> {
  const other = await ledger.newPayer(0n)
  const wire = await transferWire(ledger, payer, other.address, priceUnits, [], solana.mint)
  await ledger.send(wire).catch(() => {})
}

async function create(load: SvmLoad, store: Store, order: string, random: Random): Promise<string | null> {
  const sent = JSON.stringify({ orderId: order, priceAmount: '1.00', priceCurrency: 'USD' })
  const checkoutId = await createOnce(load, store, order, sent, random)
  if (random.isLucky(0.1)) await createOnce(load, store, order, sent, random)
  if (checkoutId !== null) load.counts.created++
  return checkoutId
}

/** Most take a final blockhash, which no fork can take back. */
async function sign(
  { ledger }: SvmLoad,
  payer: KeyPairSigner,
  terms: string,
  random: Random,
  changes: Changes = {},
): Promise<Signed | null> {
  const { accepts, resource } = JSON.parse(terms) as { accepts: PaymentRequirements[]; resource: object }
  const accepted = accepts.find(({ network }) => network === solana.network)
  if (!accepted) return null
  const signedAt = Date.now()
  const blockhash = await ledger.blockhash(random.isLucky(0.7) ? 'finalized' : 'confirmed')
  // Makes two payments of one payer at the same time differ.
  const units = BigInt(20_000 + random.between(0, 9_999))
  const transaction = await svmTransaction(accepted, payer, { units, ...changes, blockhash })
  const payload = { x402Version: 2, payload: { transaction }, resource, accepted }
  return { header: Buffer.from(JSON.stringify(payload)).toString('base64'), blockhash, signedAt }
}
