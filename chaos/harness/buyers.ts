import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { type Hex, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Answer, Presented } from '../checker/history.ts'
import { decode } from '../svm/transaction.ts'
import type { Authorized, ChaosChain } from './chain.ts'
import type { Random } from './random.ts'

export type Store = { readonly id: string; readonly key: string }

export type Load = {
  readonly stores: readonly Store[]
  readonly ports: readonly number[]
  /** What checkouts cost, in dollars. */
  readonly prices: readonly string[]
  /** The amount that is reserved for plain transfers to a checkout; null if there is none. */
  readonly readReserved: (checkoutId: string) => Promise<bigint | null>
  readonly chain: ChaosChain
  readonly answers: Answer[]
  readonly presented: Presented[]
  readonly counts: {
    created: number
    paid: number
    refused: number
    signed: number
    unanswered: number
    /** Payments with enough money that were refused for a false reason. */
    wronged: number
    refundsAsked: number
    /** Plain transfers, signatures that were copied from the chain, and payments that stores have accepted. */
    plain: number
    copied: number
    decided: number
    refundsSigned: number
    refunded: number
  }
  /**
   * How long payments take from the first request to the success answer. Only payments without mischief count, to the
   * store that does not wait for `safe`.
   */
  readonly paid: { readonly begunAt: number; readonly endedAt: number }[]
  /** Additional buyers that exist only to provoke a crash point. */
  readonly guests: Promise<unknown>[]
  /** Prepared guests that are not used yet. Each pays, then spends the money elsewhere. */
  readonly withdrawers: ReturnType<typeof prepareToWithdraw>[]
  /** No checkout can expire before the shortest lifetime has passed since then. */
  readonly begunAt: number
  isOver: boolean
  /** The share of signatures that are valid for less than half a minute. */
  readonly briefShare: number
  /** How long some buyers take to sign once they know the terms. */
  hesitateMsMax: number
  /** When the last buyer gives up. */
  giveUpAt: number
}

/** Longer than the server waits for an outcome. */
export const requestTimeoutMs = 40_000
const signaturesMax = 4
/** The shortest lifetime that a checkout can have. */
export const shortLifeSeconds = 300
/** The share of turns in which a second checkout is created and left to expire. */
const leftShare = 0.5
/** Long enough for a payment to be checked and claimed. */
const claimMs = 150
/** Reasons for a refusal that are always false here, because buyers have money and sign correctly. */
const untrueReasons = /insufficient_balance|nonce_already_used|simulation_failed|signature$/
/** The price of checkouts for which a payer has money only once. */
const poorPrice = '1.00'
const poorUnits = 1_000_000n
/** The share of signatures whose nonce names the checkout. */
const boundShare = 0.3

type Asked = {
  status: number
  body: string
  code: string
  transaction: string | undefined
  retryAfterSeconds: number
}

/**
 * A buyer that behaves as documented: it repeats requests that got no answer about the payment, with the same key or
 * signature, at any of the processes. It signs again only after a 402. Some buyers misbehave: they send everything
 * twice at once, sign with a very short window, also submit their payment to the chain themselves, or try it on another
 * checkout. Some leave a checkout to expire, or pay two checkouts with money for one.
 */
export async function buy(load: Load, name: string, key: Hex, random: Random): Promise<void> {
  const account = privateKeyToAccount(key)
  for (let turn = 0; !load.isOver; turn++) {
    const store = random.pick(load.stores)
    const checkoutId = await create(load, store, `${name}-${turn}`, random, random.pick(load.prices))
    if (checkoutId === null) continue
    if (random.isLucky(leftShare))
      await create(load, store, `${name}-${turn}-left`, random, poorPrice, shortLifeSeconds)
    if (random.isLucky(0.03))
      await spendTwice(load, store, `${name}-${turn}-poor`, random.fork(`poor ${turn}`))
    for (let signatures = 0; signatures < signaturesMax; signatures++) {
      const terms = await payUntilKnown(load, store, checkoutId, random)
      if (terms?.status !== 402) break
      if (load.hesitateMsMax > 0 && random.isLucky(0.4)) await wait(random.between(0, load.hesitateMsMax))
      const signed = await sign(load, account, terms.body, random)
      if (!signed) break
      load.counts.signed++
      const isFrontRun = random.isLucky(0.05)
      if (isFrontRun) await load.chain.frontRun(signed.authorized, signed.signature).catch(() => {})
      // The same payment twice at once, or two payments as from two tabs. All go to the same process first.
      const isTwin = random.isLucky(0.1)
      const rival = random.isLucky(0.1) ? await sign(load, account, terms.body, random) : null
      const headers = [signed.header, ...(isTwin ? [signed.header] : []), ...(rival ? [rival.header] : [])]
      const isPlain = headers.length === 1 && !isFrontRun
      const begunAt = Date.now()
      const [answers] = await Promise.all([
        Promise.all(
          headers.map((header) => payUntilKnown(load, store, checkoutId, random.fork(`${turn}`), header)),
        ),
        random.isLucky(0.2) ? lookMeanwhile(load, store, checkoutId, random.fork(`look ${turn}`)) : null,
      ])
      const answer = answers.find((one) => one?.status === 200) ?? answers[0]
      if (answer?.status === 200) {
        load.counts.paid++
        if (isPlain && store === load.stores[0]) load.paid.push({ begunAt, endedAt: Date.now() })
        if (random.isLucky(0.05))
          await tryElsewhere(load, store, `${name}-${turn}-other`, signed.header, random)
        break
      }
      if (answer?.status !== 402) break
      load.counts.refused++
      if (isPlain && untrueReasons.test((JSON.parse(answer.body) as { error?: string }).error ?? ''))
        load.counts.wronged++
    }
  }
}

async function create(
  load: Load,
  store: Store,
  order: string,
  random: Random,
  priceAmount = poorPrice,
  expiresInSeconds?: number,
): Promise<string | null> {
  const sent = JSON.stringify({
    orderId: order,
    priceAmount,
    priceCurrency: 'USD',
    expiresInSeconds,
  })
  const isRepeated = random.isLucky(0.1)
  const isConfused = random.isLucky(0.03)
  const first = await createOnce(load, store, order, sent, random)
  if (isRepeated) await createOnce(load, store, order, sent, random)
  if (isConfused) await createOnce(load, store, order, sent.replace(priceAmount, '7.00'), random)
  if (first) load.counts.created++
  return first
}

/** Repeats a create until its outcome is known. */
export async function createOnce(load: Load, store: Store, key: string, sent: string, random: Random) {
  while (Date.now() < load.giveUpAt) {
    const asked = await request(load, random, '/api/v1/checkouts', {
      kind: 'create',
      store,
      checkoutId: null,
      key,
      sent,
      headers: { 'x-api-key': store.key, 'content-type': 'application/json', 'idempotency-key': key },
    })
    if (asked?.status === 201) return (JSON.parse(asked.body) as { id: string }).id
    if (asked && asked.status < 500 && asked.code !== 'idempotency_in_progress') return null
    await wait(random.between(50, 300))
  }
  return null
}

/** Submits a payment, or requests the terms, until the answer is about the payment. */
export async function payUntilKnown(
  load: Load,
  store: Store,
  checkoutId: string,
  random: Random,
  header?: string,
): Promise<Asked | null> {
  while (Date.now() < load.giveUpAt) {
    const asked = await request(load, random, `/api/v1/checkouts/${checkoutId}`, {
      kind: 'pay',
      store,
      checkoutId,
      headers: header === undefined ? {} : { 'payment-signature': header },
    })
    const isKnown =
      asked && asked.status !== 202 && asked.status < 500 && asked.code !== 'payment_in_progress'
    if (isKnown) return asked
    // Half of them honour Retry-After.
    const isPatient = asked && asked.retryAfterSeconds > 0 && random.isLucky(0.5)
    await wait(isPatient ? asked.retryAfterSeconds * 1_000 : random.between(50, 300))
  }
  return null
}

/** Requests the terms while a payment is in progress, as a reloaded page does. It must not get any. */
async function lookMeanwhile(load: Load, store: Store, checkoutId: string, random: Random): Promise<void> {
  for (let looks = 0; looks < 3; looks++) {
    await wait(random.between(100, 800))
    await request(load, random, `/api/v1/checkouts/${checkoutId}`, {
      kind: 'pay',
      store,
      checkoutId,
      headers: {},
    })
  }
}

/** Submits an accepted payment for a second checkout of the same store, which it must not pay too. */
async function tryElsewhere(load: Load, store: Store, order: string, header: string, random: Random) {
  const checkoutId = await create(load, store, order, random, random.pick(load.prices))
  if (checkoutId !== null) await payUntilKnown(load, store, checkoutId, random, header)
}

/**
 * A payer with money for one checkout pays two at the same time. The second must be refused. The windows are short
 * because a reorganisation can take the money back. Then neither can pay, and that is known only once the windows end.
 */
async function spendTwice(load: Load, store: Store, order: string, random: Random): Promise<void> {
  const account = privateKeyToAccount(randomBytes32(random))
  await load.chain.fund(account.address, poorUnits).catch(() => {})
  await Promise.all(
    ['a', 'b'].map(async (half) => {
      const draw = random.fork(half)
      const checkoutId = await create(load, store, `${order}-${half}`, draw)
      const terms = checkoutId && (await payUntilKnown(load, store, checkoutId, draw))
      const signed = terms && terms.status === 402 && (await sign(load, account, terms.body, draw, 1))
      if (signed) await payUntilKnown(load, store, checkoutId, draw, signed.header)
    }),
  )
}

/**
 * Prepares a payer whose payment a lane must refuse. When the returned function is called, the payer pays, and spends
 * the money elsewhere before the payment is sent.
 */
export async function prepareToWithdraw(load: Load, store: Store, order: string, random: Random) {
  const account = privateKeyToAccount(randomBytes32(random))
  await load.chain.fund(account.address, poorUnits).catch(() => {})
  const checkoutId = await create(load, store, order, random)
  const terms = checkoutId === null ? null : await payUntilKnown(load, store, checkoutId, random)
  return async (): Promise<void> => {
    if (checkoutId === null || terms?.status !== 402) return
    const payment = await sign(load, account, terms.body, random, 1)
    const elsewhere = await sign(
      load,
      account,
      terms.body,
      random,
      1,
      randomBytes32(random).slice(0, 42) as Hex,
    )
    if (!payment || !elsewhere) return
    const paying = payUntilKnown(load, store, checkoutId, random, payment.header)
    await wait(claimMs)
    await load.chain.frontRun(elsewhere.authorized, elsewhere.signature).catch(() => {})
    await paying
  }
}

async function request(
  load: Load,
  random: Random,
  path: string,
  what: Pick<Answer, 'kind' | 'checkoutId' | 'key' | 'sent'> & {
    readonly store: Store
    readonly headers: Readonly<Record<string, string>>
  },
): Promise<Asked | null> {
  const { store, headers, kind, key, sent } = what
  const askedAt = new Date()
  const header = headers['payment-signature']
  if (header && what.checkoutId !== null) load.presented.push(presentedIn(header, what.checkoutId, askedAt))
  try {
    const response = await fetch(`http://127.0.0.1:${random.pick(load.ports)}${path}`, {
      method: 'POST',
      headers: { ...headers, 'x-forwarded-for': anyAddress(random) },
      ...(sent !== undefined && { body: sent }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    const body = await response.text()
    const parsed = JSON.parse(body) as { id?: string; code?: string }
    const settlement = response.headers.get('payment-response')
    const { transaction } = settlement
      ? (JSON.parse(Buffer.from(settlement, 'base64').toString()) as { transaction?: string })
      : {}
    const { status } = response
    const checkoutId = kind === 'create' && status === 201 ? (parsed.id ?? null) : what.checkoutId
    load.answers.push({
      ...{ kind, storeId: store.id, checkoutId, status, body, askedAt, answeredAt: new Date() },
      ...(key !== undefined && { key }),
      ...(sent !== undefined && { sent }),
      ...(status === 200 && transaction && { transaction }),
    })
    const retryAfterSeconds = Number.parseInt(response.headers.get('retry-after') ?? '0', 10)
    return { status, body, code: parsed.code ?? '', transaction, retryAfterSeconds }
  } catch {
    load.counts.unanswered++
    return null
  }
}

export function presentedIn(header: string, checkoutId: string, sentAt: Date): Presented {
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    payload: { authorization: Authorized } | { transaction: string }
  }
  if ('transaction' in payload) {
    const { transfer, nonce } = decode(Buffer.from(payload.transaction, 'base64'))
    return { checkoutId, payer: transfer?.by.toLowerCase() ?? '', nonce, sentAt }
  }
  const { from, nonce } = payload.authorization
  return { checkoutId, payer: from.toLowerCase(), nonce, sentAt }
}

type Terms = {
  readonly accepts: readonly { amount: string; payTo: Hex; maxTimeoutSeconds: number }[]
  readonly resource: { readonly url: string }
}

/** Some payments are signed with a window of only a few seconds, and some with a nonce that names the checkout. */
export async function sign(
  { chain, briefShare: usualShare }: Load,
  account: ReturnType<typeof privateKeyToAccount>,
  body: string,
  random: Random,
  briefShare = usualShare,
  to?: Hex,
) {
  const { accepts, resource } = JSON.parse(body) as Terms
  const [accepted] = accepts
  if (!accepted) return null
  const seconds = random.isLucky(briefShare) ? random.between(14, 25) : accepted.maxTimeoutSeconds
  const authorized: Authorized = {
    from: account.address,
    to: to ?? accepted.payTo,
    value: accepted.amount,
    validAfter: '0',
    validBefore: `${Math.floor(Date.now() / 1_000) + seconds}`,
    nonce: random.isLucky(boundShare) ? nonceFor(resource.url, random) : randomBytes32(random),
  }
  const signature = await account.signTypedData({
    domain: chain.place.domain,
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorized,
      value: BigInt(authorized.value),
      validAfter: 0n,
      validBefore: BigInt(authorized.validBefore),
    },
  })
  const payload = { x402Version: 2, resource, accepted, payload: { authorization: authorized, signature } }
  return { authorized, signature, header: Buffer.from(JSON.stringify(payload)).toString('base64') }
}

/** A random client address, because many refused payments slow down all payments from one address. */
export function anyAddress(random: Random): string {
  return `203.${[0, 0, 0].map(() => random.between(0, 255)).join('.')}`
}

/** As the protocol describes it: "fthg", 12 random bytes, and half of SHA-256(checkout id, those bytes). */
function nonceFor(url: string, random: Random): Hex {
  const [checkoutId = ''] = /ch_\w+/.exec(url) ?? []
  const own = Buffer.from(randomBytes32(random).slice(2, 26), 'hex')
  const hash = createHash('sha256').update(checkoutId).update(own).digest('hex')
  return `0x66746867${own.toString('hex')}${hash.slice(0, 32)}`
}

export function randomBytes32(random: Random): Hex {
  return toHex(Uint8Array.from({ length: 32 }, () => random.between(0, 255)))
}
