import assert from 'node:assert/strict'
import { parseTransaction } from 'viem'
import type { Database } from '../../../src/database/db.ts'
import { type Books, readBooks, untilQuiet } from './books.ts'
import { ask, type ChainPlace, type Pair, type Scan, scanChain } from './scan.ts'

/** A payment request and its answer, as the client saw them. */
export type Answered = {
  readonly checkoutId: string
  readonly status: number
  /** The transaction that a 200 named. */
  readonly transaction?: string | undefined
  readonly askedAt: Date
  readonly answeredAt: Date
}

export type Checked = {
  readonly completed: number
  readonly credits: number
  readonly paired: number
  readonly mined: number
  readonly reverted: number
  /** What the settlers paid for reverted transactions. */
  readonly revertedGas: bigint
  readonly settlerGas: bigint
}

/** What the test chain gives each account at the start. */
const fundsWei = 10_000n * 10n ** 18n

/**
 * Asserts what must hold whatever happened to the service: invariants I1 to I9 and I14 of the reliability notes. It
 * reads the database and scans the chain itself; from the product it uses only types and the connection. First it
 * waits, at most `withinMs`, until no work is left (I14); a test that stops halfway passes `isQuiet: false`. I8 and
 * I9 are about answers and are checked for those in `answers`.
 */
export async function checkInvariants(input: {
  readonly db: Database
  readonly chain: ChainPlace
  readonly answers?: readonly Answered[]
  readonly isQuiet?: boolean
  readonly withinMs?: number
  /** What each settler had at the start; null if the test changed it along the way. */
  readonly settlerFundsWei?: bigint | null
}): Promise<Checked> {
  const { db, chain, answers = [], isQuiet = true, withinMs = 60_000, settlerFundsWei = fundsWei } = input
  const wrong: string[] = []
  if (isQuiet) wrong.push(...(await untilQuiet(db, chain.url, withinMs)))
  const books = await readBooks(db, chain)
  const scan = await scanChain(
    chain,
    books.settlers.map(({ address }) => address),
  )
  const paired = new Map(scan.pairs.map((pair) => [`${pair.blockHash} ${pair.logIndex}`, pair]))

  wrong.push(
    ...checkCredits(books, scan, paired),
    ...checkCharges(books, scan),
    ...checkNonces(books, scan),
    ...checkStates(books, scan),
    ...checkAnswers(books, answers),
    ...(await checkConservation(books, scan, chain, settlerFundsWei)),
    ...(await checkMarks(db)),
    ...(await checkReceipts(db)),
  )
  assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} violations of the invariants`)
  const reverted = scan.mined.filter(({ isSuccess }) => !isSuccess)
  return {
    completed: books.checkouts.filter(({ status }) => status === 'COMPLETED').length,
    credits: books.credits.length,
    paired: scan.pairs.length,
    mined: scan.mined.length,
    reverted: reverted.length,
    revertedGas: reverted.reduce((sum, { gasUsed }) => sum + gasUsed, 0n),
    settlerGas: scan.mined.reduce((sum, { gasUsed }) => sum + gasUsed, 0n),
  }
}

/**
 * A store's receipts are numbered 1, 2, 3 … per series and year. Once its events are numbered, each of its paid checkouts
 * has one valid receipt, of the payment that paid it, and no payment that was taken back for good has one.
 */
async function checkReceipts(db: Database): Promise<string[]> {
  const gaps = await db.query<{ said: string }>(
    `select format('receipts of %s, series "%s", %s: %s numbers up to %s, counted %s', r.store_id, r.series, r.year,
       count(*), max(r.number), n.last_number) as said
     from buyer_receipts r left join buyer_receipt_counters n using (store_id, series, year)
     group by r.store_id, r.series, r.year, n.last_number
     having count(*) <> max(r.number) or min(r.number) <> 1 or n.last_number is distinct from max(r.number)`,
  )
  const wrong = await db.query<{ said: string }>(
    `select format('checkout %s, %s: exact payment %s, valid receipts of %s', c.id, c.status, k.payment_id, r.of) as said
     from checkouts c
     left join credits k on k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is null
     cross join lateral (select array_agg(r.payment_id) as of from buyer_receipts r
       where r.checkout_id = c.id and r.void_at is null) r
     where not exists (select 1 from events e where e.store_id = c.store_id and e.sequence is null)
       and case c.status when 'COMPLETED' then r.of is distinct from array[k.payment_id]
         when 'PROCESSING' then false else r.of is not null end`,
  )
  return [...gaps, ...wrong].map(({ said }) => said)
}

/** An authorization is marked as credited only if a credit exists: a wrong mark would keep it from being buried. */
async function checkMarks(db: Database): Promise<string[]> {
  const rows = await db.query<{ payer: string; nonce: string }>(
    `select a.payer, a.nonce from authorizations a where a.is_credited and not exists (select 1 from credits k
       where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
         and k.orphaned_at is null and k.checkout_id is not distinct from a.checkout_id)`,
  )
  return rows.map(
    ({ payer, nonce }) => `authorization ${payer} ${nonce} is marked as credited but has no credit`,
  )
}

/** I1, I2, I3: every recorded payment happened on the chain, once, and every payment on the chain is recorded. */
function checkCredits(books: Books, scan: Scan, paired: ReadonlyMap<string, Pair>): string[] {
  const wrong: string[] = []
  const exact = Map.groupBy(
    books.credits.filter(({ disposition }) => disposition === 'exact'),
    ({ checkoutId }) => checkoutId,
  )
  for (const checkout of books.checkouts) {
    const credits = exact.get(checkout.id) ?? []
    if (credits.length > 1) wrong.push(`I2 ${checkout.id} has ${credits.length} exact credits`)
    const [credit] = credits
    if (checkout.status !== 'COMPLETED') continue
    if (!credit) {
      wrong.push(`I1 ${checkout.id} is COMPLETED without an exact credit`)
      continue
    }
    const isOffered = isOneOf([...checkout.options, ...checkout.reserved], credit)
    if (!isOffered && !credit.isAccepted) wrong.push(`I1 ${checkout.id} was paid in a way it did not offer`)
    const needed = checkout.finality === 'included' ? credit.blockNumber : books.safeNumber
    if (credit.blockNumber > needed) wrong.push(`I1 ${checkout.id} is COMPLETED before its payment is safe`)
  }
  const moved = new Map(
    scan.transfers.map((transfer) => [`${transfer.blockHash} ${transfer.logIndex}`, transfer]),
  )
  const checkouts = new Map(books.checkouts.map((checkout) => [checkout.id, checkout]))
  for (const credit of books.credits) {
    const place = `${credit.blockHash} ${credit.logIndex}`
    const transfer = moved.get(place)
    const isSame =
      transfer?.transactionHash === credit.transactionHash &&
      transfer.from === credit.payer &&
      transfer.to === credit.payTo &&
      transfer.value === credit.amount &&
      (paired.get(place)?.nonce ?? null) === credit.nonce
    if (!isSame) wrong.push(`I1 credit ${credit.paymentId} differs from the chain`)
    const checkout = checkouts.get(credit.checkoutId ?? '')
    if (credit.nonce === null && checkout && !credit.isAccepted && !isOneOf(checkout.reserved, credit))
      wrong.push(`I1 ${checkout.id} was credited a transfer of an amount not reserved for it`)
  }
  for (const [what, keyOf] of [
    ['log', (credit: Books['credits'][number]) => `${credit.blockHash} ${credit.logIndex}`],
    ['authorization', (credit: Books['credits'][number]) => `${credit.payer} ${credit.nonce}`],
  ] as const) {
    const signed = what === 'log' ? books.credits : books.credits.filter(({ nonce }) => nonce !== null)
    for (const [key, group] of Map.groupBy(signed, keyOf))
      if (group.length > 1) wrong.push(`I2 ${what} ${key} is credited ${group.length} times`)
  }
  const credited = new Map(books.credits.map((credit) => [`${credit.payer} ${credit.nonce}`, credit]))
  const places = new Set(books.credits.map(({ blockHash, logIndex }) => `${blockHash} ${logIndex}`))
  for (const { blockHash, blockNumber, logIndex, transactionHash, to, value } of scan.transfers) {
    const place = `${blockHash} ${logIndex}`
    const isOurs = blockNumber >= books.firstBlock && value > 0n && books.wallets.has(to)
    if (isOurs && !paired.has(place) && !places.has(place))
      wrong.push(`I3 ${transactionHash} reached ${to} but is not credited`)
  }
  for (const pair of scan.pairs) {
    if (pair.blockNumber < books.firstBlock || pair.value === 0n) continue
    const claim = books.authorizations.get(`${pair.from} ${pair.nonce}`)
    const isClaimed = claim?.payTo === pair.to && claim.amount === pair.value
    if (!isClaimed && (claim || !books.wallets.has(pair.to))) continue
    const credit = credited.get(`${pair.from} ${pair.nonce}`)
    if (!credit) wrong.push(`I3 ${pair.transactionHash} paid ${claim?.checkoutId} but is not credited`)
    else if (claim && credit.checkoutId !== claim.checkoutId)
      wrong.push(`I3 ${pair.transactionHash} paid ${claim.checkoutId} but is credited elsewhere`)
  }
  return wrong
}

function isOneOf(
  asked: readonly { asset: string; amount: string; payTo: string }[],
  credit: Books['credits'][number],
): boolean {
  return asked.some(
    ({ payTo, amount, asset }) =>
      payTo.toLowerCase() === credit.payTo &&
      BigInt(amount) === credit.amount &&
      asset.toLowerCase() === credit.asset,
  )
}

/** I4: nobody is charged twice without an event to the store. */
function checkCharges(books: Books, scan: Scan): string[] {
  const wrong: string[] = []
  const byCheckout = Map.groupBy(books.authorizations.values(), ({ checkoutId }) => checkoutId)
  const moved = new Map(scan.pairs.map((pair) => [`${pair.from} ${pair.nonce}`, pair]))
  for (const checkout of books.checkouts) {
    const claims = byCheckout.get(checkout.id) ?? []
    const unresolved = claims.filter((claim) => claim.isUnresolved)
    if (unresolved.length > 1) wrong.push(`I4 ${checkout.id} has ${unresolved.length} unresolved claims`)
    const paid = claims.filter((claim) => {
      const pair = moved.get(`${claim.payer} ${claim.nonce}`)
      return pair?.to === claim.payTo && pair.value === claim.amount
    })
    const told = checkout.events.filter((type) => /^payment\.(overpaid|late)$/.test(type)).length
    if (paid.length - 1 > told)
      wrong.push(`I4 ${checkout.id} was charged ${paid.length} times, but has only ${told} events for it`)
  }
  return wrong
}

/** I6: settlers use each nonce once, with bytes that were committed before they were sent. */
function checkNonces(books: Books, scan: Scan): string[] {
  const wrong: string[] = []
  for (const { address, nextNonce } of books.settlers) {
    const mined = scan.mined.filter(({ from }) => from === address)
    if (mined.some(({ nonce }, i) => nonce !== i)) wrong.push(`I6 ${address} mined its nonces out of order`)
    if (mined.length > nextNonce) wrong.push(`I6 ${address} mined ${mined.length} of ${nextNonce} nonces`)
    for (const { hash, nonce } of mined) {
      const broadcast = books.broadcasts.get(hash)
      if (broadcast?.nonce !== nonce || broadcast.settler !== address)
        wrong.push(`I6 ${hash} was mined but is not in broadcasts`)
    }
  }
  const calls = new Map<string, string>()
  for (const { hash, settler, nonce, bytes, createdAt, firstSentAt } of books.broadcasts.values()) {
    if (firstSentAt && firstSentAt < createdAt) wrong.push(`I6 ${hash} was sent before it was committed`)
    const { to, data } = parseTransaction(bytes)
    if (to?.toLowerCase() === settler && (data === undefined || data === '0x')) continue
    const call = `${to} ${data}`
    const other = calls.get(`${settler} ${nonce}`)
    if (other !== undefined && other !== call)
      wrong.push(`I6 nonce ${nonce} of ${settler} has two different calls`)
    calls.set(`${settler} ${nonce}`, call)
  }
  return wrong
}

const edges: Readonly<Record<string, RegExp>> = {
  none: /^created$/,
  created: /^(processing|completed|expired|canceled)$/,
  reopened: /^(processing|completed|expired|canceled)$/,
  processing: /^(reopened|completed|expired)$/,
  completed: /^processing$/,
  expired: /^completed$/,
  canceled: /^completed$/,
}

const statusAfter: Readonly<Record<string, string>> = {
  created: 'OPEN',
  reopened: 'OPEN',
  processing: 'PROCESSING',
  completed: 'COMPLETED',
  expired: 'EXPIRED',
  canceled: 'CANCELED',
}

/** I7: statuses change only along allowed edges, with one event each; an authorization called dead can never be paid. */
function checkStates(books: Books, scan: Scan): string[] {
  const wrong: string[] = []
  for (const { id, status, version, events } of books.checkouts) {
    const moves = events
      .filter((type) => type.startsWith('checkout.'))
      .map((type) => type.slice('checkout.'.length))
    for (const [i, move] of moves.entries()) {
      const before = moves[i - 1] ?? 'none'
      if (!edges[before]?.test(move)) wrong.push(`I7 ${id} went from ${before} to ${move}`)
      if (before === 'completed' && !events.includes('payment.reorged'))
        wrong.push(`I7 ${id} left COMPLETED without a reorganisation`)
    }
    if (moves.length !== version)
      wrong.push(`I7 ${id} has version ${version} but ${moves.length} events: ${moves}`)
    if (statusAfter[moves.at(-1) ?? ''] !== status) wrong.push(`I7 ${id} is ${status} after ${moves}`)
  }
  const moved = new Map(scan.pairs.map((pair) => [`${pair.from} ${pair.nonce}`, pair]))
  const now = scan.blockTimes.get(scan.head) ?? 0
  for (const [key, claim] of books.authorizations) {
    const pair = moved.get(key)
    if (claim.state !== 'dead' || claim.isCredited) continue
    const isSpent =
      scan.canceled.has(key) || (pair && (pair.to !== claim.payTo || pair.value !== claim.amount))
    if (!isSpent && BigInt(now) < claim.validBefore)
      wrong.push(`I7 ${key} is called dead but could still be paid`)
  }
  return wrong
}

/** I8, I9: answers stay true for good, and no payer is asked to sign while an earlier payment may still go through. */
function checkAnswers(books: Books, answers: readonly Answered[]): string[] {
  const wrong: string[] = []
  const checkouts = new Map(books.checkouts.map((checkout) => [checkout.id, checkout]))
  const claims = Map.groupBy(books.authorizations.values(), ({ checkoutId }) => checkoutId)
  const exact = new Map(
    books.credits
      .filter(({ disposition }) => disposition === 'exact')
      .map((credit) => [credit.checkoutId, credit]),
  )
  for (const { checkoutId, status, transaction, askedAt, answeredAt } of answers) {
    const checkout = checkouts.get(checkoutId)
    const isReorged = checkout?.events.includes('payment.reorged') ?? false
    if (status === 200 && !isReorged) {
      if (checkout?.status !== 'COMPLETED')
        wrong.push(`I8 ${checkoutId} was answered 200 but is not COMPLETED`)
      const credit = exact.get(checkoutId)
      if (transaction !== undefined && credit?.transactionHash !== transaction)
        wrong.push(`I8 ${checkoutId} was answered with ${transaction} but paid by ${credit?.transactionHash}`)
    }
    if (status !== 402) continue
    for (const { firstSignedAt, resolvedAt, isUnresolved } of claims.get(checkoutId) ?? []) {
      if (firstSignedAt === null || firstSignedAt >= askedAt) continue
      if (isUnresolved || (resolvedAt !== null && answeredAt < resolvedAt))
        wrong.push(`I9 ${checkoutId} was answered 402 while a payment was unresolved`)
    }
    const credit = exact.get(checkoutId)
    if (credit && credit.includedAt < askedAt && !isReorged)
      wrong.push(`I9 ${checkoutId} was answered 402 after it was paid`)
  }
  return wrong
}

/** I5: money and gas add up. */
async function checkConservation(
  books: Books,
  scan: Scan,
  { url, token }: ChainPlace,
  settlerFundsWei: bigint | null,
): Promise<string[]> {
  const wrong: string[] = []
  const at = `0x${scan.head.toString(16)}`
  const balanceOf = (account: string) => `0x70a08231${account.slice(2).padStart(64, '0')}`
  const sum = (values: Iterable<{ value: bigint }>) =>
    [...values].reduce((total, { value }) => total + value, 0n)
  for (const wallet of books.wallets) {
    const [balance] = await ask(url, [['eth_call', { to: token, data: balanceOf(wallet) }, at]])
    const arrived = sum(scan.transfers.filter(({ to }) => to === wallet))
    const left = sum(scan.transfers.filter(({ from }) => from === wallet))
    if (BigInt(balance as string) !== arrived - left)
      wrong.push(`I5 ${wallet} has a balance that differs from its transfers`)
    const seen = scan.transfers.filter(
      ({ to, blockNumber }) => to === wallet && blockNumber >= books.firstBlock,
    )
    const credited = books.credits.filter(({ payTo }) => payTo === wallet)
    const units = credited.reduce((total, { amount }) => total + amount, 0n)
    if (units !== sum(seen)) wrong.push(`I5 ${wallet} was paid ${sum(seen)} but credited ${units}`)
  }
  for (const { address } of books.settlers) {
    const [tokens, wei] = await ask(url, [
      ['eth_call', { to: token, data: balanceOf(address) }, at],
      ['eth_getBalance', address, at],
    ])
    if (BigInt(tokens as string) !== 0n && !books.wallets.has(address))
      wrong.push(`I5 settler ${address} holds tokens`)
    const fees = scan.mined
      .filter(({ from }) => from === address)
      .reduce((total, { feeWei }) => total + feeWei, 0n)
    if (settlerFundsWei !== null && BigInt(wei as string) !== settlerFundsWei - fees)
      wrong.push(`I5 settler ${address} has ${wei}, expected ${settlerFundsWei - fees}`)
  }
  return wrong
}
