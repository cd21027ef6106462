import type {
  Authorization,
  Books,
  Broadcast,
  Event,
  History,
  Refund,
  Restore,
  Violation,
} from './history.ts'

/**
 * Removes from a history what a restore is allowed to lose, and nothing else: rows that were written after the backup
 * started and are missing from the final books, and what clients heard about them before the database was restored.
 *
 *   checkouts   removed with every answer about them
 *   events      removed with their webhooks; for events that the backup has, only the sequence they got after it
 *   bytes       that a settler committed and sent: added back to the books, because they have used their nonces
 *   claims      that our own bytes paid: added back as they were. Their money must be credited to their checkouts if the
 *               books have these, and a 402 after their signing is a violation
 *   refusals    a claim that was proven dead after the backup counts as resolved from that first proof on
 *   refunds     that were paid: added back as LOST, so that their transfers still belong to them. The chain alone shows
 *               whether more went back than was paid
 *   a 200       removed for a payment that its payer submitted to the chain: no marker names its checkout, so the
 *               payment is unmatched
 *
 * A 200 for a checkout that the books have, double charges, nonces and gaps are checked as in any other history.
 */
export function leaveOutLost(history: History): History {
  const { books, chain, answers, received, sightings, restores = [] } = history
  if (restores.length === 0) return history
  const lost = findLost(restores)
  const known = new Set(books.checkouts.map(({ id }) => id))
  const refunds = new Set(books.refunds.map(({ id }) => id))
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
      refunds: putBackRefunds(history, restores),
    },
    answers: answers.filter(({ kind, checkoutId, status, transaction, answeredAt, body }) => {
      if (kind === 'refund' && status < 300) {
        const { id } = JSON.parse(body) as { id: string }
        return refunds.has(id) || !restores.some(({ lostAt }) => answeredAt < lostAt)
      }
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

/** I10: a reader of a lost log gets an error, and the cursor to continue from. */
export function checkCursors({ restores = [] }: History): Violation[] {
  return restores
    .flatMap(({ cursors }) => cursors)
    .filter(
      ({ status, code, resumedStatus }) =>
        status !== 409 || code !== 'log_restarted' || resumedStatus !== 200,
    )
    .map(({ storeId, status, code, resumedStatus }) => ({
      invariant: 'I10',
      what: `an old cursor of ${storeId} was answered ${status} ${code}, and the cursor to resume from ${resumedStatus}`,
    }))
}

type Lost<Row> = ReadonlyMap<string, { readonly row: Row; readonly lostAt: Date }>

type AllLost = {
  readonly checkouts: Lost<unknown>
  readonly events: Lost<Event>
  readonly broadcasts: Lost<Broadcast>
  readonly claims: Lost<Authorization>
  /** When claims that the backup contains were proven dead after it. */
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
    // A payment that is found on the chain is claimed again: that new claim does not replace the lost one.
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

/** Rows that were written after a backup started. A row that exists when the next backup starts was not lost. */
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

/** A refund that was prepared for signing after the backup, which the restored books do not know. */
function putBackRefunds({ books, chain }: History, restores: readonly Restore[]): Refund[] {
  const owned = new Set(books.refunds.flatMap((refund) => (isOver(refund) ? [] : [slotOf(refund)])))
  const moved = new Set(chain.transfers.map(({ from, nonce }) => `${from} ${nonce}`))
  const lost = new Map(
    restores
      .flatMap((restore) => restore.lost.refunds)
      .filter((refund) => !isOver(refund) && moved.has(slotOf(refund)) && !owned.has(slotOf(refund)))
      .map((refund) => [slotOf(refund), { ...refund, status: 'LOST' }]),
  )
  return [...books.refunds, ...lost.values()]
}

function isOver({ status }: Refund): boolean {
  return status === 'FAILED' || status === 'CANCELED'
}

function slotOf({ wallet, nonce }: Refund): string {
  return `${wallet} ${nonce}`
}

/** An event with its sequence. If that sequence was lost, the event gets another one. */
function numberOf({ id, sequence }: { readonly id: string; readonly sequence: number | null }): string {
  return `${id} ${sequence}`
}

function keyOf({ payer, nonce }: { readonly payer: string; readonly nonce: string | null }): string {
  return `${payer} ${nonce}`
}

/** Identifies one claim of an authorization, because an authorization can be claimed again. */
function claimOf(claim: Authorization): string {
  return `${keyOf(claim)} ${claim.claimedAt.getTime()}`
}
