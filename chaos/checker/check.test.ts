import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check } from './check.ts'
import { type Books, type History, type Invariant, invariants, type Scan } from './history.ts'
import { type Change, deliver, ids, inBooks, soundHistory } from './sound-history.ts'

const onChain =
  (change: (chain: Scan) => Partial<Scan>): Change =>
  (history) => ({ ...history, chain: { ...history.chain, ...change(history.chain) } })

/** Changes the rows that match. */
function where<Row>(rows: readonly Row[], isMeant: (row: Row) => boolean, change: Partial<Row>): Row[] {
  assert(rows.some(isMeant), 'no row matches, so the test changes nothing')
  return rows.map((row) => (isMeant(row) ? { ...row, ...change } : row))
}

const credited = (checkoutId: string, change: Partial<Books['credits'][number]>): Change =>
  inBooks(({ credits }) => ({
    credits: where(credits, (row) => row.checkoutId === checkoutId && !row.isOrphaned, change),
  }))
const claimed = (nonce: string, change: Partial<Books['authorizations'][number]>): Change =>
  inBooks(({ authorizations }) => ({
    authorizations: where(authorizations, (row) => row.nonce === nonce, change),
  }))
const answered =
  (
    isMeant: (row: History['answers'][number]) => boolean,
    change: Partial<History['answers'][number]>,
  ): Change =>
  (history) => ({ ...history, answers: where(history.answers, isMeant, change) })
const event = (type: string, checkoutId: string, change: Partial<Books['events'][number]>): Change =>
  inBooks(({ events }) => ({
    events: where(events, (row) => row.type === type && row.checkoutId === checkoutId, change),
  }))

/** Each entry breaks a sound history in one place, and names the invariant that this breaks. */
const broken: readonly [Invariant, string, Change][] = [
  [
    'I19',
    'a final payment that is in no books',
    inBooks(({ movements }) => ({ movements: movements.slice(0, 1) })),
  ],
  ['I1', 'COMPLETED by the wrong token', credited(ids.paid, { asset: '0xother' })],
  [
    'I1',
    'COMPLETED without a credit',
    inBooks(({ credits }) => ({ credits: credits.filter(({ checkoutId }) => checkoutId !== ids.paid) })),
  ],
  ['I1', 'a credit of an orphaned block', credited(ids.paid, { blockHash: '0xgone' })],
  [
    'I1',
    'COMPLETED before the payment has the finality that the store requires',
    inBooks(({ checkouts }) => ({
      checkouts: where(checkouts, ({ id }) => id === ids.again, { finality: 'finalized' }),
    })),
  ],
  [
    'I2',
    'one log credited twice',
    inBooks(({ credits }) => ({ credits: [...credits, ...credits.slice(0, 1)] })),
  ],
  [
    'I2',
    'two exact credits of one checkout',
    inBooks(({ credits }) => ({ credits: where(credits, (row) => row.isOrphaned, { isOrphaned: false }) })),
  ],
  [
    'I3',
    'a payment that was not credited',
    inBooks(({ credits }) => ({ credits: credits.filter(({ checkoutId }) => checkoutId !== ids.again) })),
  ],
  ['I3', 'a payment credited to another checkout', claimed('0x01', { checkoutId: ids.expired })],
  ['I3', 'a payment in the second in which it was claimed, credited to none', unmatchedAfter(-1)],
  [
    'I3',
    'a payment older than its claim, whose nonce names the checkout, credited to none',
    (history) => renamed(unmatchedAfter(0)(history), '0x01', `0x66746867${'0'.repeat(56)}`),
  ],
  ['I4', 'two payments unresolved at once', claimed('0x03', { resolvedAt: new Date(1_013_000) })],
  [
    'I4',
    'two charges without a second event',
    onChain(({ transfers }) => ({
      transfers: [
        ...transfers,
        ...where(transfers, ({ nonce }) => nonce === '0x04', { nonce: '0x03', blockHash: '0xb' }).filter(
          ({ nonce }) => nonce === '0x03',
        ),
      ],
    })),
  ],
  ['I5', 'a wallet that has less than it received', onChain(() => ({ balances: new Map() }))],
  [
    'I5',
    'gas that is not accounted for',
    onChain(() => ({ settlerFunds: new Map([['0xsettler', { startWei: 100n, endWei: 70n }]]) })),
  ],
  ['I6', 'a gap in the nonces', onChain(({ mined }) => ({ mined: mined.slice(1) }))],
  [
    'I6',
    'mined bytes that were never committed',
    inBooks(({ broadcasts }) => ({ broadcasts: broadcasts.filter(({ hash }) => hash !== '0xtx14') })),
  ],
  [
    'I6',
    'bytes that reached a node before they were committed',
    (history) => ({ ...history, sightings: [{ hash: '0xtx10', isCommitted: false }] }),
  ],
  [
    'I6',
    'two calls at one nonce',
    inBooks(({ broadcasts }) => ({
      broadcasts: where(broadcasts, ({ hash }) => hash === '0xtx10', { call: 'pay another' }),
    })),
  ],
  [
    'I7',
    'a status change that is not documented',
    event('checkout.reopened', ids.again, { type: 'checkout.canceled' }),
  ],
  [
    'I7',
    'COMPLETED undone without a reorganisation',
    event('payment.reorged', ids.reorged, { type: 'payment.finalized' }),
  ],
  ['I7', 'marked dead while it could still pay', claimed('0x03', { validBefore: 1_021n })],
  [
    'I8',
    'an acknowledged create that was lost',
    inBooks(({ checkouts, events }) => ({
      checkouts: checkouts.filter(({ id }) => id !== ids.expired),
      events: events.filter(({ checkoutId }) => checkoutId !== ids.expired),
    })),
  ],
  [
    'I8',
    'a 200 for a transaction that did not pay',
    answered(({ status, checkoutId }) => status === 200 && checkoutId === ids.paid, { transaction: '0xlie' }),
  ],
  [
    'I9',
    'a 402 while a payment is unresolved',
    answered(({ status, checkoutId }) => status === 409 && checkoutId === ids.again, { status: 402 }),
  ],
  [
    'I9',
    'a 402 after it was paid',
    answered(({ status, checkoutId }) => status === 200 && checkoutId === ids.paid, { status: 402 }),
  ],
  [
    'I9',
    'a 402 after a payment was marked dead that paid in the end',
    onChain(({ transfers }) => ({
      transfers: [...transfers, ...where(transfers, ({ nonce }) => nonce === '0x04', { nonce: '0x03' })],
    })),
  ],
  [
    'I9',
    'a 402 while a reorganised payment may return',
    (history) => ({
      ...history,
      books: {
        ...history.books,
        authorizations: history.books.authorizations.filter(({ checkoutId }) => checkoutId !== ids.reorged),
        credits: where(history.books.credits, ({ paymentId }) => paymentId === 'pay_0x02', {
          isOrphaned: true,
          orphanedAt: new Date(1_012_500),
        }),
      },
      answers: where(history.answers, ({ transaction }) => transaction === '0xtx12', { status: 402 }),
    }),
  ],
  [
    'I10',
    'a change without its event',
    inBooks(({ events }) => ({
      events: events.filter(
        ({ type, checkoutId }) => type !== 'checkout.completed' || checkoutId !== ids.paid,
      ),
    })),
  ],
  [
    'I10',
    'a gap in a log',
    inBooks(({ events }) => ({ events: where(events, ({ sequence }) => sequence === 9, { sequence: 10 }) })),
  ],
  ['I10', 'versions out of order', event('checkout.created', ids.paid, { sequence: 3 })],
  [
    'I10',
    'marked delivered but never received',
    (history) => ({ ...history, received: history.received.slice(1) }),
  ],
  [
    'I10',
    'a wrong signature',
    (history) => ({
      ...history,
      received: where(history.received, ({ id }) => id === 'evt_0', { timestamp: '9' }),
    }),
  ],
  [
    'I10',
    'an event that is delivered with other content than the log has',
    (history) => {
      const [first] = history.books.events
      assert(first?.data.checkout)
      const told = { ...first, data: { checkout: { ...first.data.checkout, status: 'COMPLETED' } } }
      return { ...history, received: [deliver('we_a', told), ...history.received.slice(1)] }
    },
  ],
  [
    'I10',
    'an event that is delivered but was never committed',
    (history) => {
      const [first] = history.books.events
      assert(first)
      return { ...history, received: [...history.received, deliver('we_a', { ...first, id: 'evt_99' })] }
    },
  ],
  [
    'I10',
    'an overpayment without a notification',
    inBooks(({ credits }) => ({
      credits: where(credits, (row) => row.isOrphaned, {
        isOrphaned: false,
        disposition: 'overpaid',
        nonce: null,
      }),
    })),
  ],
  [
    'I11',
    'two answers to one key',
    (history) => ({
      ...history,
      answers: where(history.answers, (row) => row === history.answers[0], { body: '{"id":"other"}' }),
    }),
  ],
  [
    'I11',
    'two checkouts of one key',
    inBooks(({ checkouts }) => ({
      checkouts: where(checkouts, ({ id }) => id === ids.expired, { orderId: ids.again }),
    })),
  ],
  [
    'I12',
    'an answer that shows another store’s checkout',
    answered(({ kind }) => kind === 'pay', { body: JSON.stringify({ id: ids.expired }) }),
  ],
  [
    'I13',
    'a row whose status differs from its events',
    inBooks(({ checkouts }) => ({
      checkouts: where(checkouts, ({ id }) => id === ids.expired, { status: 'OPEN' }),
    })),
  ],
  ['I13', 'an event that names another payment', credited(ids.paid, { transactionHash: '0xother' })],
  [
    'I15',
    'a refund that is COMPLETED without its transfer',
    inBooks(({ refunds }) => ({
      refunds: where(refunds, ({ id }) => id === ids.refund, { transactionHash: '0xother' }),
    })),
  ],
  [
    'I16',
    'a transfer that another cell has credited too',
    (history) => ({ ...history, neighbours: [{ ...strangers(history), credits: history.books.credits }] }),
  ],
  [
    'I16',
    'a wallet that is in two cells',
    (history) => ({ ...history, neighbours: [{ ...strangers(history), wallets: history.books.wallets }] }),
  ],
  [
    'I1',
    'a payment called final with too few blocks on top of it',
    credited(ids.paid, { finalizedAt: new Date(1_017_000) }),
  ],
  [
    'I1',
    'a payment called safe in a block that is not',
    inBooks(({ credits }) => ({
      credits: where(credits, ({ blockNumber }) => blockNumber === 14, { safeAt: new Date(1_014_000) }),
    })),
  ],
  [
    'I1',
    'COMPLETED by a plain transfer of the price, which could be for any order',
    (history) => ({
      ...credited(ids.paid, { nonce: null })(history),
      chain: {
        ...history.chain,
        transfers: where(history.chain.transfers, ({ nonce }) => nonce === '0x01', { nonce: null }),
      },
    }),
  ],
  [
    'I5',
    'a fee on record that nobody paid',
    inBooks(({ costs }) => ({ costs: where(costs, ({ nonce }) => nonce === 1, { wei: 4n }) })),
  ],
  ['I5', 'a cost that the transaction had in no block, replaced or not', onChain(() => ({ replaced: [] }))],
  [
    'I10',
    'an event that overtakes another at an ordered endpoint',
    (history) => ({
      ...history,
      received: history.received.toReversed(),
    }),
  ],
  [
    'I10',
    'an event that arrives at an ordered endpoint although the one before it was refused',
    (history) => {
      const refused = history.received.findIndex(({ endpointId }) => endpointId === 'we_b')
      const { received } = history
      assert(received[refused])
      return {
        ...history,
        received: [...received.with(refused, { ...received[refused], status: 500 }), received[refused]],
      }
    },
  ],
  [
    'I10',
    'refund events that no endpoint gets',
    (history) => {
      const isRefund = (id: string) =>
        history.books.events.some((row) => row.id === id && row.type.startsWith('refund.'))
      const { deliveries } = history.books
      return {
        ...history,
        books: { ...history.books, deliveries: deliveries.filter(({ eventId }) => !isRefund(eventId)) },
        received: history.received.filter(({ id }) => !isRefund(id)),
      }
    },
  ],
  [
    'I11',
    'two refunds of one key',
    (history) => {
      const told = history.answers.find(({ kind }) => kind === 'refund')
      assert(told)
      const body = JSON.stringify({ ...JSON.parse(told.body), id: 'rf_twin' })
      return { ...history, answers: [...history.answers, { ...told, body }] }
    },
  ],
  [
    'I13',
    'events that name twice the amount',
    inBooks(({ events }) => ({
      events: events.map((row) => {
        const { checkout } = row.data
        if (!checkout?.payment) return row
        return {
          ...row,
          data: { checkout: { ...checkout, payment: { ...checkout.payment, amount: '2000000' } } },
        }
      }),
    })),
  ],
  [
    'I13',
    'a refund’s event that names another amount',
    inBooks(({ refunds }) => ({
      refunds: where(refunds, ({ id }) => id === ids.canceled, { amount: 1n }),
    })),
  ],
  [
    'I15',
    'a refund that was signed while its payment was off the chain',
    credited(ids.paid, { isOrphaned: true, orphanedAt: new Date(1_014_500) }),
  ],
  [
    'I15',
    'a payment that was accepted after it went back',
    inBooks(({ events, credits }) => {
      const { paymentId: id = '' } = credits.find(({ checkoutId }) => checkoutId === ids.paid) ?? {}
      const [first] = events
      assert(first)
      const accepted = { ...first, id: 'evt_accepted', type: 'payment.accepted', sequence: 900 }
      return { events: [...events, { ...accepted, data: { payment: { id } as never } }] }
    }),
  ],
  [
    'I17',
    'a checkout that is paid into another store’s wallet',
    inBooks(({ checkouts }) => ({
      checkouts: where(checkouts, ({ id }) => id === ids.paid, {
        options: [{ asset: '0xtoken', amount: '1000000', payTo: '0xwallet-b' }],
      }),
    })),
  ],
  [
    'I17',
    'a checkout that asks for half of what its store asked for',
    inBooks(({ checkouts }) => ({
      checkouts: where(checkouts, ({ id }) => id === ids.expired, {
        options: [{ asset: '0xtoken', amount: '500000', payTo: '0xwallet-b' }],
      }),
    })),
  ],
  [
    'I18',
    'a checkout that is paid by a transfer that was on the chain before it was presented',
    (history) => ({
      ...history,
      presented: where(history.presented, ({ nonce }) => nonce === '0x02', { sentAt: new Date(1_013_000) }),
    }),
  ],
  [
    'I18',
    'a claim that its buyer presented for another checkout',
    (history) => ({
      ...history,
      presented: where(history.presented, ({ nonce }) => nonce === '0x02', { checkoutId: ids.expired }),
    }),
  ],
  [
    'I18',
    'a payment whose nonce names another checkout',
    (history) => renamed(history, '0x01', `0x66746867${'0'.repeat(56)}`),
  ],
  ['I14', 'work that is left', (history) => ({ ...history, undone: ['3 authorizations are unresolved'] })],
]

/** The same history with another nonce in place of one. */
function renamed(history: History, from: string, to: string): History {
  const rename = <Row extends { readonly nonce: string | null }>(rows: readonly Row[]) =>
    rows.map((row) => (row.nonce === from ? { ...row, nonce: to } : row))
  const { books, chain, presented } = history
  return {
    ...history,
    books: { ...books, credits: rename(books.credits), authorizations: rename(books.authorizations) },
    chain: { ...chain, transfers: rename(chain.transfers) },
    presented: rename(presented),
  }
}

/** The payment 0x01 is claimed `ms` after the second of its block, and belongs to no checkout. */
function unmatchedAfter(ms: number): Change {
  return (history) => {
    const transfer = history.chain.transfers.find(({ nonce }) => nonce === '0x01')
    assert(transfer)
    const { books } = claimed('0x01', { claimedAt: new Date((transfer.blockTime + 1) * 1_000 + ms) })(history)
    const credits = where(books.credits, ({ nonce }) => nonce === '0x01', {
      checkoutId: null,
      disposition: 'unmatched',
    })
    return { ...history, books: { ...books, credits } }
  }
}

/** The books of another cell, which have nothing in common with these. */
function strangers({ books }: History): Books {
  const none = { checkouts: [], authorizations: [], credits: [], broadcasts: [], settlers: [], wallets: [] }
  return {
    ...books,
    ...none,
    events: [],
    deliveries: [],
    endpoints: [],
    refunds: [],
    refundTotals: [],
    movements: [],
    due: [],
  }
}

describe('the checker finds every kind of violation', () => {
  test('a sound history has no violations', () => {
    assert.deepEqual(check(soundHistory()), [])
  })

  test('a payment that is older than its claim may belong to no checkout', () => {
    const found = check(unmatchedAfter(0)(soundHistory()))
    assert.deepEqual(
      found.filter(({ invariant }) => invariant === 'I3'),
      [],
    )
  })

  for (const [invariant, what, change] of broken) {
    test(`${invariant}: ${what}`, () => {
      const found = new Set(check(change(soundHistory())).map((violation) => violation.invariant))
      assert(found.has(invariant), `found ${[...found].join(' ') || 'nothing'}`)
    })
  }

  test('every invariant is broken by at least one case', () => {
    const tried = new Set(broken.map(([invariant]) => invariant))
    assert.deepEqual(
      Object.keys(invariants).filter((invariant) => !tried.has(invariant as Invariant)),
      [],
    )
  })
})
