import type { Authorization, Books, Broadcast, Event, History, Restore, Violation } from './history.ts'

/**
 * What a restore may lose is left out before a history is judged, and nothing else: rows that were written after the
 * backup was begun and that the books do not have at the end, and what was said of them until the database was put back.
 *
 *   checkouts   and every answer about them
 *   events      and the webhooks that told of them; of those that the backup has, the number that they got after it
 *   bytes       that a settler committed and sent: these are put back into the books, as they have used their nonces
 *   claims      that our own bytes paid: they are put back as they were, so that their money must be credited to their
 *               checkouts where these are known, and no 402 may have come after their signing
 *   refusals    that a claim could still pay: it had been found before, so that it counts from when it was
 *   a 200       for a payment that its payer handed in: no marker names its checkout, so it is on the unmatched list
 *
 * A 200 for a checkout that the books know, two charges, nonces and gaps are judged as in any other history.
 */
export function leaveOutLost(history: History): History {
  const { books, chain, answers, received, sightings, restores = [] } = history
  if (restores.length === 0) return history
  const lost = findLost(restores)
  const known = new Set(books.checkouts.map(({ id }) => id))
  const told = new Set(books.events.map(numberOf))
  const signed = new Set(books.broadcasts.map(({ hash }) => hash))
  const sent = new Set(sightings.map(({ hash }) => hash))
  const bytes = [...lost.broadcasts.values()]
    .map(({ row }) => row)
    .filter(({ hash }) => !signed.has(hash) && sent.has(hash))
  const mined = new Set(chain.mined.map(({ hash }) => hash))
  const strays = new Set(
    books.credits
      .filter(({ checkoutId, transactionHash }) => checkoutId === null && !mined.has(transactionHash))
      .map((credit) => `${lost.claims.get(keyOf(credit))?.row.checkoutId} ${credit.transactionHash}`),
  )
  return {
    ...history,
    books: {
      ...books,
      broadcasts: [...books.broadcasts, ...bytes],
      authorizations: putBackClaims(history, lost, new Set(bytes.map(({ hash }) => hash)), known),
    },
    answers: answers.filter(({ kind, checkoutId, status, transaction, answeredAt }) => {
      const gone = lost.checkouts.get(checkoutId ?? '')
      if (gone && !known.has(checkoutId ?? '') && answeredAt < gone.lostAt) return false
      const isStray = kind === 'pay' && status === 200 && strays.has(`${checkoutId} ${transaction}`)
      return !isStray || !restores.some(({ lostAt }) => answeredAt < lostAt)
    }),
    received: received.filter(({ body, timestamp }) => {
      const name = numberOf(JSON.parse(body) as { id: string; sequence: number })
      const gone = lost.events.get(name)
      const isBefore = gone !== undefined && Number.parseInt(timestamp, 10) * 1_000 < gone.lostAt.getTime()
      return !isBefore || told.has(name)
    }),
  }
}

/** I10: whoever stood in a log that was lost is told so, and where to go on. */
export function checkCursors({ restores = [] }: History): Violation[] {
  return restores
    .flatMap(({ cursors }) => cursors)
    .filter(
      ({ status, code, resumedStatus }) =>
        status !== 409 || code !== 'log_restarted' || resumedStatus !== 200,
    )
    .map(({ storeId, status, code, resumedStatus }) => ({
      invariant: 'I10',
      what: `an old cursor of ${storeId} was answered ${status} ${code}, and the one to go on from ${resumedStatus}`,
    }))
}

type Lost<Row> = ReadonlyMap<string, { readonly row: Row; readonly lostAt: Date }>

type AllLost = {
  readonly checkouts: Lost<unknown>
  readonly events: Lost<Event>
  readonly broadcasts: Lost<Broadcast>
  readonly claims: Lost<Authorization>
  /** When claims that a backup has were found to be dead after it. */
  readonly refusals: ReadonlyMap<string, Date>
}

function findLost(restores: readonly Restore[]): AllLost {
  return {
    checkouts: lostOf(
      restores,
      ({ checkouts }) => checkouts,
      ({ id }) => id,
    ),
    events: lostOf(restores, ({ events }) => events, numberOf),
    broadcasts: lostOf(
      restores,
      ({ broadcasts }) => broadcasts,
      ({ hash }) => hash,
    ),
    // One that is found on the chain is claimed anew, so that it does not stand for the one that was lost.
    claims: new Map(
      [...lostOf(restores, ({ authorizations }) => authorizations, claimOf).values()].map((claim) => [
        keyOf(claim.row),
        claim,
      ]),
    ),
    refusals: new Map(
      restores
        .flatMap(({ lost }) => lost.authorizations)
        .toReversed()
        .flatMap((claim) => (claim.resolvedAt ? [[claimOf(claim), claim.resolvedAt]] : [])),
    ),
  }
}

/** Rows that came after a backup was begun. One that is there when the next is begun was not lost. */
function lostOf<Row>(
  restores: readonly Restore[],
  rowsOf: (books: Books) => readonly Row[],
  nameOf: (row: Row) => string,
): Lost<Row> {
  const found = new Map<string, { row: Row; lostAt: Date }>()
  for (const { copied, lost, lostAt } of restores) {
    const kept = new Set(rowsOf(copied).map(nameOf))
    for (const name of kept) found.delete(name)
    for (const row of rowsOf(lost)) if (!kept.has(nameOf(row))) found.set(nameOf(row), { row, lostAt })
  }
  return found
}

function putBackClaims(
  { books, chain }: History,
  { claims, refusals }: AllLost,
  bytes: ReadonlySet<string>,
  known: ReadonlySet<string>,
): Authorization[] {
  const paidByUs = new Set(
    chain.transfers
      .filter(({ transactionHash }) => bytes.has(transactionHash))
      .map(({ from, nonce }) => `${from} ${nonce}`),
  )
  const all = new Map(books.authorizations.map((claim) => [keyOf(claim), claim]))
  for (const [key, { row }] of claims) {
    if (!paidByUs.has(key) || !known.has(row.checkoutId ?? '')) continue
    const { checkoutId, claimedAt, firstSignedAt, resolvedAt } = row
    all.set(key, { ...(all.get(key) ?? row), checkoutId, claimedAt, firstSignedAt, resolvedAt })
  }
  return [...all.values()].map((claim) => ({
    ...claim,
    resolvedAt: refusals.get(claimOf(claim)) ?? claim.resolvedAt,
  }))
}

/** An event under the number that it got; it gets another if that was lost. */
function numberOf({ id, sequence }: { readonly id: string; readonly sequence: number | null }): string {
  return `${id} ${sequence}`
}

function keyOf({ payer, nonce }: { readonly payer: string; readonly nonce: string | null }): string {
  return `${payer} ${nonce}`
}

/** One claim of an authorization, which can be claimed again. */
function claimOf(claim: Authorization): string {
  return `${keyOf(claim)} ${claim.claimedAt.getTime()}`
}
