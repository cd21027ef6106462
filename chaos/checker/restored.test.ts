import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check } from './check.ts'
import type { Books, Credit, History, Invariant, Restore } from './history.ts'
import { type Change, deliver, ids, inBooks, soundHistory } from './sound-history.ts'

const lostAt = new Date(1_016_000)
const lostId = `ch_${'lost'.padEnd(24, '0')}`

/**
 * The sound history, restored to before its last payment. The backup lacks the claim of `again` that paid, its bytes
 * and its last events. The final books also lack a checkout that was created and paid.
 */
function restoredHistory(): History {
  const history = soundHistory()
  const { books, chain } = history
  const paid = books.credits.find(({ checkoutId }) => checkoutId === ids.again)
  const claim = books.authorizations.find(({ nonce }) => nonce === '0x04')
  const created = books.events.find(({ checkoutId }) => checkoutId === ids.expired)
  const made = books.checkouts.find(({ id }) => id === ids.expired)
  assert(paid && claim && created && made)
  const last = books.events.filter(({ checkoutId }) => checkoutId === ids.again).slice(-2)
  const isLast = ({ id }: { id: string }) => last.some((event) => event.id === id)
  const lostEvent = { ...created, id: 'evt_lost', checkoutId: lostId, sequence: 99 }
  const copied: Books = {
    ...books,
    authorizations: books.authorizations.filter(({ nonce }) => nonce !== '0x04'),
    credits: books.credits.filter(({ nonce }) => nonce !== '0x04'),
    broadcasts: books.broadcasts.filter(({ hash }) => hash !== '0xtx14'),
    events: books.events.filter((event) => !isLast(event)),
  }
  const lost: Books = {
    ...books,
    checkouts: [...books.checkouts, { ...made, id: lostId }],
    authorizations: [
      ...books.authorizations,
      { ...claim, checkoutId: lostId, nonce: '0x05', claimedAt: new Date(1_013_000) },
    ],
    credits: [...books.credits, { ...paid, ...place, checkoutId: lostId, nonce: '0x05' }],
    broadcasts: [...books.broadcasts, bytes],
    events: [
      ...books.events.map((event) => (isLast(event) ? { ...event, id: `${event.id}_lost` } : event)),
      lostEvent,
    ],
  }
  const cursors = [{ storeId: 'st_a', status: 409, code: 'log_restarted', resumedStatus: 200 }]
  const lostAnswer = {
    storeId: 'st_b',
    checkoutId: lostId,
    askedAt: new Date(1_012_000),
    body: '{}',
  } as const
  return {
    ...history,
    books: {
      ...books,
      // As `reconcile` restores them: claimed when they were read on the chain, their bytes unknown.
      authorizations: [
        ...books.authorizations.map((row) =>
          row === claim ? { ...row, claimedAt: new Date(1_017_000), firstSignedAt: null } : row,
        ),
        { ...claim, checkoutId: null, nonce: '0x05', claimedAt: new Date(1_017_000), firstSignedAt: null },
      ],
      credits: [...books.credits, unmatched(paid)],
      broadcasts: books.broadcasts.filter(({ hash }) => hash !== '0xtx14'),
      settlers: books.settlers.map((settler) => ({ ...settler, nextNonce: 6 })),
    },
    chain: {
      ...chain,
      transfers: [
        ...chain.transfers,
        ...chain.transfers
          .filter(({ nonce }) => nonce === '0x04')
          .map((row) => ({ ...row, ...place, nonce: '0x05' })),
      ],
      mined: [...chain.mined, { hash: bytes.hash, from: bytes.settler, nonce: 5, feeWei: 0n }],
      balances: new Map([...chain.balances, [paid.payTo, 2n * paid.amount]]),
    },
    answers: [
      ...history.answers,
      { ...lostAnswer, kind: 'create', status: 201, answeredAt: new Date(1_012_100), key: 'lost', sent: '' },
      { ...lostAnswer, kind: 'pay', status: 200, answeredAt: new Date(1_015_500), transaction: bytes.hash },
      { ...lostAnswer, kind: 'pay', status: 404, answeredAt: new Date(1_018_000) },
      {
        ...lostAnswer,
        ...{ kind: 'pay', checkoutId: ids.again, status: 200, answeredAt: new Date(1_015_500) },
        transaction: '0xtx14',
      },
    ],
    received: [...history.received, deliver('we_b', lostEvent)],
    sightings: [...history.sightings, { hash: bytes.hash, isCommitted: true }],
    restores: [{ copied, lost, lostAt, cursors }],
  }
}

const place = { blockHash: '0xblock15', blockNumber: 15, transactionHash: '0xtx15', logIndex: 1 }
const bytes = { hash: '0xtx15', settler: '0xsettler', nonce: 5, call: 'pay 5', isNoOp: false }
const unmatched = (credit: Credit): Credit => ({
  ...credit,
  ...place,
  safeAt: new Date(1_019_000),
  paymentId: 'pay_0x05',
  checkoutId: null,
  nonce: '0x05',
  disposition: 'unmatched',
})

const inRestore =
  (change: (restore: Restore) => Partial<Restore>): Change =>
  (history) => ({
    ...history,
    restores: (history.restores ?? []).map((restore) => ({ ...restore, ...change(restore) })),
  })

/** As if the server had not searched the chain for the lost payments. */
const forget: Change = inBooks(({ checkouts, credits, events }) => ({
  checkouts: checkouts.map((row) => (row.id === ids.again ? { ...row, status: 'OPEN', version: 3 } : row)),
  credits: credits.filter(({ nonce }) => nonce !== '0x04'),
  events: events.filter(
    ({ checkoutId, checkoutVersion }) => checkoutId !== ids.again || (checkoutVersion ?? 0) < 4,
  ),
}))

/** Violations that a restore does not excuse, with the invariant that each breaks. */
const broken: readonly [Invariant, string, Change][] = [
  ['I8', 'a 200 for a checkout that the books have and that is not COMPLETED', forget],
  ['I3', 'a payment with a marker that was not credited', forget],
  [
    'I3',
    'a payment with a marker that is unmatched',
    inBooks(({ credits, authorizations }) => ({
      credits: credits.map((row) => (row.nonce === '0x04' ? { ...row, checkoutId: null } : row)),
      authorizations: authorizations.map((row) =>
        row.nonce === '0x04' ? { ...row, checkoutId: null } : row,
      ),
    })),
  ],
  [
    'I3',
    'a payment of a lost checkout that was not credited',
    inBooks(({ credits }) => ({ credits: credits.filter(({ nonce }) => nonce !== '0x05') })),
  ],
  [
    'I4',
    'two charges of one checkout without an event',
    (history) => {
      const claim = history.books.authorizations.find(({ nonce }) => nonce === '0x05')
      assert(claim)
      return inBooks(({ authorizations }) => ({
        authorizations: authorizations.map((row) =>
          row === claim ? { ...row, checkoutId: ids.again } : row,
        ),
      }))(history)
    },
  ],
  [
    'I6',
    'mined bytes that were never committed',
    inRestore(({ lost }) => ({
      lost: { ...lost, broadcasts: lost.broadcasts.filter(({ hash }) => hash !== bytes.hash) },
    })),
  ],
  [
    'I6',
    'a nonce that was reused for another call',
    inBooks(({ broadcasts }) => ({
      broadcasts: [...broadcasts, { ...bytes, hash: '0xagain', call: 'pay 6' }],
    })),
  ],
  [
    'I8',
    'a checkout that is in the backup and was lost',
    inRestore(({ copied, lost }) => ({ copied: { ...copied, checkouts: lost.checkouts } })),
  ],
  [
    'I8',
    'a checkout that was created after the restore and was lost',
    inRestore(() => ({ lostAt: new Date(1_012_050) })),
  ],
  [
    'I8',
    'a checkout that one restore kept and the next one lost',
    (history) => {
      const [first] = history.restores ?? []
      assert(first)
      return { ...history, restores: [first, { ...first, copied: first.lost }] }
    },
  ],
  [
    'I9',
    'a 402 after the restore for a checkout that was paid before it',
    (history) => ({
      ...history,
      answers: [
        ...history.answers,
        {
          ...{ kind: 'pay', storeId: 'st_b', checkoutId: ids.again, status: 402, body: '{}' },
          ...{ askedAt: new Date(1_016_500), answeredAt: new Date(1_016_600) },
        },
      ],
    }),
  ],
  [
    'I10',
    'a webhook whose event was in no log',
    inRestore(({ lost }) => ({
      lost: { ...lost, events: lost.events.filter(({ id }) => id !== 'evt_lost') },
    })),
  ],
  [
    'I10',
    'an old cursor that is accepted',
    inRestore(() => ({ cursors: [{ storeId: 'st_a', status: 200, code: '', resumedStatus: 200 }] })),
  ],
]

describe('a restore excuses what it may lose and nothing else', () => {
  test('a sound restored history has no violations', () => {
    assert.deepEqual(check(restoredHistory()), [])
  })

  test('without the restore, the same history has violations', () => {
    const found = new Set(check({ ...restoredHistory(), restores: [] }).map(({ invariant }) => invariant))
    assert.deepEqual([...found].sort(), ['I10', 'I6', 'I8'])
  })

  test('a payment that its payer submitted to the chain may be unmatched, and its 200 is excused', () => {
    const handedIn: Change = (history) => ({
      ...inRestore(({ lost }) => ({
        lost: {
          ...lost,
          authorizations: lost.authorizations.map((row) =>
            row.checkoutId === lostId ? { ...row, checkoutId: ids.expired } : row,
          ),
          broadcasts: lost.broadcasts.filter(({ hash }) => hash !== bytes.hash),
        },
      }))(history),
      chain: { ...history.chain, mined: history.chain.mined.slice(0, 5) },
      answers: history.answers.map((row) =>
        row.transaction === '0xtx15' ? { ...row, checkoutId: ids.expired } : row,
      ),
    })
    const history = handedIn(restoredHistory())
    assert.deepEqual(check(history), [])
    const again = { copied: history.books, lost: history.books, lostAt: new Date(1_019_000), cursors: [] }
    assert.deepEqual(check({ ...history, restores: [...(history.restores ?? []), again] }), [])
  })

  for (const [invariant, what, change] of broken) {
    test(`${invariant}: ${what}`, () => {
      const found = new Set(check(change(restoredHistory())).map((violation) => violation.invariant))
      assert(found.has(invariant), `found ${[...found].join(' ') || 'nothing'}`)
    })
  }
})
