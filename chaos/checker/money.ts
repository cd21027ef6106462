import type { Authorization, Books, Credit, History, Scan, Terms, Transfer, Violation } from './history.ts'
import { isOlderThanClaim } from './orders.ts'

/** I1: a COMPLETED checkout was paid on the chain, by its terms and at its finality. */
export function checkSoundness({ books, chain }: History): Violation[] {
  const wrong: string[] = []
  const exact = Map.groupBy(
    live(books).filter(({ disposition }) => disposition === 'exact'),
    ({ checkoutId }) => checkoutId,
  )
  const reached = { included: chain.head, safe: chain.safe, finalized: chain.finalized }
  for (const { id, status, finality, options, reserved } of books.checkouts) {
    if (status !== 'COMPLETED') continue
    const [credit] = exact.get(id) ?? []
    if (!credit) wrong.push(`${id} is COMPLETED without an exact credit`)
    else if (
      credit.acceptedAt === null &&
      // Only a signature names the checkout that it pays. A plain transfer must have an amount that only this checkout
      // has.
      !(credit.nonce === null ? reserved : [...options, ...reserved]).some((terms) => fits(terms, credit))
    )
      wrong.push(`${id} is COMPLETED by ${credit.paymentId}, which does not match its terms`)
    else if (credit.blockNumber > (reached[finality as keyof typeof reached] ?? -1))
      wrong.push(`${id} is COMPLETED by ${credit.paymentId}, which is not ${finality} yet`)
  }
  const moved = new Map(chain.transfers.map((transfer) => [placeOf(transfer), transfer]))
  for (const credit of live(books)) {
    const transfer = moved.get(placeOf(credit))
    const isSame =
      transfer !== undefined &&
      transfer.transactionHash === credit.transactionHash &&
      transfer.asset === credit.asset &&
      transfer.from === credit.payer &&
      transfer.to === credit.payTo &&
      transfer.value === credit.amount &&
      transfer.nonce === credit.nonce
    if (!isSame) wrong.push(`credit ${credit.paymentId} at ${placeOf(credit)} differs from the chain`)
  }
  return [...wrong, ...findFinalTooEarly(books, chain)].map((what) => ({ invariant: 'I1', what }))
}

/** A block is safe or final once as many blocks are on top of it as at the end of the run. */
function findFinalTooEarly(books: Books, chain: Scan): string[] {
  return books.credits.flatMap(({ paymentId, blockNumber, safeAt, finalizedAt }) => {
    const isEarly = (at: Date | null, depth: number) => {
      const reachedAt = chain.reachedAt.get(blockNumber + depth)
      if (at === null || chain.reachedAt.size === 0) return false
      return reachedAt === undefined || at.getTime() < reachedAt
    }
    return [
      ...(isEarly(safeAt, chain.head - chain.safe) ? [`${paymentId} was called safe too early`] : []),
      ...(isEarly(finalizedAt, chain.head - chain.finalized)
        ? [`${paymentId} was called final too early`]
        : []),
    ]
  })
}

/** I2: no transfer log and no authorization is credited twice, and no checkout has two exact credits. */
export function checkSingleCredits({ books }: History): Violation[] {
  const credits = live(books)
  const signed = credits.filter(({ nonce }) => nonce !== null)
  const exact = credits.filter(({ disposition }) => disposition === 'exact')
  return [
    ...repeated(credits, (credit) => `log ${placeOf(credit)}`),
    ...repeated(signed, (credit) => `authorization ${keyOf(credit)}`),
    ...repeated(exact, ({ checkoutId }) => `exact credit of ${checkoutId}`),
  ].map((what) => ({ invariant: 'I2', what }))
}

function repeated(credits: readonly Credit[], nameOf: (credit: Credit) => string): string[] {
  return [...Map.groupBy(credits, nameOf)]
    .filter(([, group]) => group.length > 1)
    .map(([name, group]) => `${name}: ${group.map(({ paymentId }) => paymentId).join(', ')}`)
}

/**
 * I3: every transfer that was claimed or reached a store's wallet is credited, to the checkout that claimed it; or to none
 * if it is older than the claim.
 */
export function checkCompleteness({ books, chain }: History): Violation[] {
  const wrong: string[] = []
  const claims = new Map(books.authorizations.map((claim) => [keyOf(claim), claim]))
  const credited = new Map(live(books).map((credit) => [placeOf(credit), credit]))
  const wallets = new Set(books.wallets)
  for (const transfer of chain.transfers) {
    if (transfer.blockNumber < books.firstBlock || transfer.value === 0n) continue
    const claim = transfer.nonce === null ? undefined : claims.get(`${transfer.from} ${transfer.nonce}`)
    // A claimed nonce that was spent on something else pays no checkout.
    if (claim ? !isPaidBy(claim, transfer) : !wallets.has(transfer.to)) continue
    const credit = credited.get(placeOf(transfer))
    if (!credit) wrong.push(`${transfer.transactionHash} paid ${claim?.checkoutId ?? transfer.to}: no credit`)
    else if (claim && credit.checkoutId === null && isOlderThanClaim(claim, transfer)) continue
    else if (claim && credit.checkoutId !== claim.checkoutId)
      wrong.push(`${transfer.transactionHash} paid ${claim.checkoutId}: credited to ${credit.checkoutId}`)
  }
  return wrong.map((what) => ({ invariant: 'I3', what }))
}

/** I4: a checkout's claims are never unresolved at the same time, and its store is notified of a second charge. */
export function checkCharges({ books, chain }: History): Violation[] {
  const wrong: string[] = []
  const moved = new Map(chain.transfers.map((transfer) => [`${transfer.from} ${transfer.nonce}`, transfer]))
  const told = Map.groupBy(
    books.events.filter(({ type }) => type === 'payment.overpaid' || type === 'payment.late'),
    ({ checkoutId }) => checkoutId,
  )
  for (const [id, claims] of Map.groupBy(books.authorizations, ({ checkoutId }) => checkoutId)) {
    if (id === null) continue
    const inOrder = claims.toSorted((a, b) => a.claimedAt.getTime() - b.claimedAt.getTime())
    for (const [i, claim] of inOrder.entries()) {
      const before = inOrder[i - 1]
      if (before && (before.resolvedAt === null || before.resolvedAt > claim.claimedAt))
        wrong.push(`${id} had ${keyOf(before)} and ${keyOf(claim)} unresolved at once`)
    }
    const paid = claims.filter((claim) => {
      const transfer = moved.get(keyOf(claim))
      return transfer !== undefined && isPaidBy(claim, transfer)
    })
    const notices = told.get(id)?.length ?? 0
    if (paid.length - 1 > notices)
      wrong.push(
        `${id} was charged ${paid.length} times with ${notices} notices: ${paid.map(keyOf).join(', ')}`,
      )
  }
  return wrong.map((what) => ({ invariant: 'I4', what }))
}

/** I5: wallet balances and settlers' gas equal the sum of what moved. */
export function checkConservation({ books, chain }: History): Violation[] {
  const wrong: string[] = []
  for (const wallet of books.wallets) {
    const balance = chain.balances.get(wallet) ?? 0n
    const sum = sumFor(chain, wallet)
    if (balance !== sum) wrong.push(`${wallet} has ${balance} units, but its transfers add up to ${sum}`)
    const seen = chain.transfers.filter(
      ({ to, blockNumber }) => to === wallet && blockNumber >= books.firstBlock,
    )
    const arrived = total(seen.map(({ value }) => value))
    const credited = total(
      live(books)
        .filter(({ payTo }) => payTo === wallet)
        .map(({ amount }) => amount),
    )
    if (arrived !== credited) wrong.push(`${wallet} received ${arrived} units, but was credited ${credited}`)
  }
  for (const { address } of books.settlers) {
    if ((chain.balances.get(address) ?? 0n) !== 0n) wrong.push(`settler ${address} holds tokens`)
    const funds = chain.settlerFunds.get(address)
    const spent = total(chain.mined.filter(({ from }) => from === address).map(({ feeWei }) => feeWei))
    if (funds && funds.startWei - funds.endWei !== spent)
      wrong.push(
        `settler ${address} spent ${funds.startWei - funds.endWei} wei, but its fees add up to ${spent}`,
      )
  }
  // A cost is recorded once, from the block that held the transaction when it was read, even if that block is replaced
  // later.
  const fees = Map.groupBy([...chain.replaced, ...chain.mined], ({ from, nonce }) => `${from} ${nonce}`)
  for (const { settler, nonce, wei } of books.costs) {
    const paid = (fees.get(`${settler} ${nonce}`) ?? []).map(({ feeWei }) => feeWei)
    if (!paid.includes(wei))
      wrong.push(`nonce ${nonce} of ${settler} cost ${paid.join(' or ')} wei, but ${wei} are on record`)
  }
  return wrong.map((what) => ({ invariant: 'I5', what }))
}

function sumFor(chain: Scan, account: string): bigint {
  const into = chain.transfers.filter(({ to }) => to === account).map(({ value }) => value)
  const out = chain.transfers.filter(({ from }) => from === account).map(({ value }) => value)
  return total(into) - total(out)
}

function total(values: readonly bigint[]): bigint {
  return values.reduce((sum, value) => sum + value, 0n)
}

function live(books: Books): readonly Credit[] {
  return books.credits.filter(({ isOrphaned }) => !isOrphaned)
}

function placeOf({ blockHash, logIndex }: { blockHash: string; logIndex: number }): string {
  return `${blockHash} ${logIndex}`
}

function keyOf({ payer, nonce }: { payer: string; nonce: string | null }): string {
  return `${payer} ${nonce}`
}

function isPaidBy(claim: Authorization, transfer: Transfer): boolean {
  return transfer.to === claim.payTo && transfer.value === claim.amount
}

function fits({ asset, amount, payTo }: Terms, credit: Credit): boolean {
  return (
    asset.toLowerCase() === credit.asset &&
    BigInt(amount) === credit.amount &&
    payTo.toLowerCase() === credit.payTo
  )
}
