import { createHmac } from 'node:crypto'
import type {
  Answer,
  Authorization,
  Books,
  Credit,
  Event,
  History,
  Movement,
  Received,
  Refund,
  Transfer,
} from './history.ts'
import { identityOf, noncesOf } from './refunds.ts'

/**
 * A small history in which every invariant holds. It has two stores and four checkouts: one was paid; one was paid,
 * reorganised and paid again; one had a first payment that died and a second that paid; one expired. A quarter of the first
 * was refunded, and another refund of it was canceled. Its settler has five transactions, the first of which was signed
 * twice.
 */
const network = 'eip155:31337'
const asset = '0xtoken'
const settler = '0xsettler'
const secret = `whsec_${Buffer.from('a secret of the test').toString('base64')}`
const payTo = { st_a: '0xwallet-a', st_b: '0xwallet-b' } as const
const price = 1_000_000n
const quarter = 250_000n

type StoreId = keyof typeof payTo

export const ids = {
  paid: idOf('paid'),
  reorged: idOf('reorged'),
  again: idOf('again'),
  expired: idOf('expired'),
  refund: 'rf_a',
  canceled: 'rf_b',
} as const

const checkoutIds = [ids.paid, ids.reorged, ids.again, ids.expired]

export function soundHistory(): History {
  const payments = [
    { checkoutId: ids.paid, storeId: 'st_a', nonce: '0x01', block: 10 },
    { checkoutId: ids.reorged, storeId: 'st_a', nonce: '0x02', block: 12 },
    { checkoutId: ids.again, storeId: 'st_b', nonce: '0x04', block: 14 },
  ] as const
  const paid = payments.map(
    ({ storeId, nonce, block }): Transfer => ({
      ...placeAt(block),
      asset,
      from: '0xpayer',
      to: payTo[storeId],
      value: price,
      nonce,
    }),
  )
  const credits = payments.map((payment) => creditOf(payment, payment.block))
  const [, second] = payments
  const [refunded] = credits
  if (!refunded) throw new Error('no payment')
  const [refundNonce = ''] = noncesOf(network, refunded)
  const returned = {
    ...placeAt(16),
    asset,
    from: payTo.st_a,
    to: '0xpayer',
    value: quarter,
    nonce: refundNonce,
  }
  const transfers: Transfer[] = [...paid, returned]
  const refundCredit: Credit = {
    ...{ ...refunded, ...placeAt(16), paymentId: 'pay_back', checkoutId: null, disposition: 'unmatched' },
    ...{ payer: payTo.st_a, payTo: '0xpayer', nonce: refundNonce, amount: quarter, includedAt: at(16) },
    ...{ safeAt: at(20), finalizedAt: null },
  }
  const refundClaim: Authorization = {
    ...claimOf('', 'st_a', refundNonce, 16),
    ...{ checkoutId: null, payer: payTo.st_a, payTo: '0xpayer', amount: quarter },
  }
  const orphaned = { ...creditOf(second, 11), blockHash: '0xorphan', isOrphaned: true, orphanedAt: at(11.5) }
  const claims = payments.map(({ checkoutId, storeId, nonce, block }) =>
    claimOf(checkoutId, storeId, nonce, block),
  )
  const dead: Authorization = {
    ...claimOf(ids.again, 'st_b', '0x03', 2),
    validBefore: 1_003n,
    state: 'dead',
    resolvedAt: at(10),
  }
  const twice = ['created', 'processing', 'completed', 'processing', 'completed']
  const reorged = eventsOf('st_a', ids.reorged, twice, credits[1])
  const events = [
    ...eventsOf('st_a', ids.paid, ['created', 'processing', 'completed'], credits[0]),
    ...reorged.slice(0, 4),
    eventOf('st_a', 'payment.reorged', ids.reorged, 4),
    ...reorged.slice(4),
    ...eventsOf(
      'st_b',
      ids.again,
      ['created', 'processing', 'reopened', 'processing', 'completed'],
      credits[2],
    ),
    ...eventsOf('st_b', ids.expired, ['created', 'expired']),
    ...refundEvents(ids.refund, 'requested', 'completed', 'reorged', 'completed'),
    ...refundEvents(ids.canceled, 'requested', 'canceled'),
  ]
  const counts = new Map<string, number>()
  const numbered = events.map((event, i): Event => {
    const sequence = (counts.get(event.storeId) ?? 0) + 1
    counts.set(event.storeId, sequence)
    return { ...event, id: `evt_${i}`, sequence }
  })
  const endpoints = [
    { id: 'we_a', storeId: 'st_a', secret, isOrdered: false },
    { id: 'we_b', storeId: 'st_b', secret, isOrdered: true },
  ]
  const deliveries = numbered.map(({ id, storeId }) => ({
    eventId: id,
    endpointId: storeId === 'st_a' ? 'we_a' : 'we_b',
    state: 'delivered',
  }))
  return {
    books: {
      network,
      firstBlock: 1,
      checkouts: [
        checkoutOf('st_a', ids.paid, 'COMPLETED', 3),
        checkoutOf('st_a', ids.reorged, 'COMPLETED', 5),
        checkoutOf('st_b', ids.again, 'COMPLETED', 5),
        checkoutOf('st_b', ids.expired, 'EXPIRED', 2),
      ],
      authorizations: [...claims, dead, refundClaim],
      credits: [...credits, orphaned, refundCredit],
      broadcasts: [
        { hash: '0xtx10-cheap', settler, nonce: 0, call: 'pay 1', isNoOp: false },
        { hash: '0xtx10', settler, nonce: 0, call: 'pay 1', isNoOp: false },
        { hash: '0xtx12', settler, nonce: 1, call: 'pay 2', isNoOp: false },
        { hash: '0xdead', settler, nonce: 2, call: 'pay 3', isNoOp: false },
        { hash: '0xfill', settler, nonce: 2, call: 'nothing', isNoOp: true },
        { hash: '0xtx14', settler, nonce: 3, call: 'pay 4', isNoOp: false },
        { hash: '0xtx16', settler, nonce: 4, call: 'refund', isNoOp: false },
      ],
      settlers: [{ address: settler, nextNonce: 5 }],
      wallets: Object.values(payTo),
      owners: Object.entries(payTo).map(([storeId, wallet]) => ({ storeId, wallet })),
      // The third was read in a block that was replaced later.
      costs: [5n, 5n, 6n, 5n].map((wei, nonce) => ({ settler, nonce, wei })),
      events: numbered,
      deliveries,
      endpoints,
      refunds: [
        {
          ...refundOf(ids.refund, refunded),
          status: 'COMPLETED',
          nonce: refundNonce,
          signedAt: at(15),
          transactionHash: '0xtx16',
        },
        { ...refundOf(ids.canceled, refunded), status: 'CANCELED' },
      ],
      refundTotals: [
        {
          paymentId: refunded.paymentId,
          asset,
          identity: identityOf(refunded),
          amount: price,
          reserved: quarter,
        },
      ],
      movements: credits.filter(({ finalizedAt }) => finalizedAt !== null).map(lineOf),
      due: [],
    },
    chain: {
      head: 20,
      headTime: 1_020,
      safe: 16,
      finalized: 12,
      reachedAt: new Map(Array.from({ length: 21 }, (_, number) => [number, at(number).getTime()])),
      transfers,
      canceled: new Set(),
      mined: ['0xtx10', '0xtx12', '0xfill', '0xtx14', '0xtx16'].map((hash, nonce) => ({
        hash,
        from: settler,
        nonce,
        feeWei: 5n,
      })),
      replaced: [{ hash: '0xfill', from: settler, nonce: 2, feeWei: 6n }],
      balances: new Map([
        [payTo.st_a, 2n * price - quarter],
        [payTo.st_b, price],
      ]),
      settlerFunds: new Map([[settler, { startWei: 100n, endWei: 75n }]]),
    },
    answers: [
      ...checkoutIds.flatMap((id) => [createdAnswer(id), createdAnswer(id)]),
      payAnswer(ids.paid, 402, 5),
      payAnswer(ids.paid, 200, 15, '0xtx10'),
      payAnswer(ids.reorged, 200, 12, '0xtx11'),
      payAnswer(ids.reorged, 200, 15, '0xtx12'),
      payAnswer(ids.again, 409, 5),
      payAnswer(ids.again, 402, 11),
      refundAnswer(ids.refund),
      refundAnswer(ids.refund),
    ],
    presented: [...claims, dead].map(({ checkoutId, payer, nonce, claimedAt }) => ({
      ...{ checkoutId: checkoutId ?? '', payer, nonce, sentAt: claimedAt },
    })),
    received: numbered.map((event) => deliver(event.storeId === 'st_a' ? 'we_a' : 'we_b', event)),
    sightings: ['0xtx10-cheap', '0xtx10', '0xtx12', '0xdead', '0xfill', '0xtx14', '0xtx16'].map((hash) => ({
      hash,
      isCommitted: true,
    })),
    undone: [],
  }
}

function idOf(word: string): string {
  return `ch_${word.padEnd(24, '0')}`
}

function storeOf(id: string): StoreId {
  return id === ids.paid || id === ids.reorged ? 'st_a' : 'st_b'
}

function at(seconds: number): Date {
  return new Date((1_000 + seconds) * 1_000)
}

function placeAt(block: number) {
  return {
    blockHash: `0xblock${block}`,
    blockNumber: block,
    blockTime: 1_000 + block,
    transactionHash: `0xtx${block}`,
    logIndex: 1,
    position: 0,
  }
}

function creditOf(payment: { checkoutId: string; storeId: StoreId; nonce: string }, block: number): Credit {
  return {
    ...placeAt(block),
    paymentId: `pay_${payment.nonce}`,
    checkoutId: payment.checkoutId,
    asset,
    payer: '0xpayer',
    nonce: payment.nonce,
    payTo: payTo[payment.storeId],
    amount: price,
    disposition: 'exact',
    isOrphaned: false,
    includedAt: at(block),
    orphanedAt: null,
    reversedAt: null,
    // The chain ends at block 20, with 16 safe and 12 final: four and eight blocks later.
    safeAt: block <= 16 ? at(block + 4) : null,
    finalizedAt: block <= 12 ? at(block + 8) : null,
    acceptedAt: null,
  }
}

function lineOf({ paymentId, amount, payTo: wallet, transactionHash }: Credit, i: number): Movement {
  const own = {
    storeId: 'st_a',
    number: i + 1,
    network,
    type: 'payment',
    bookedAt: at(20),
    refundId: null,
    reverses: null,
  }
  return { ...own, asset, amount, wallet, transactionHash, paymentId }
}

function claimOf(checkoutId: string, storeId: StoreId, nonce: string, block: number): Authorization {
  return {
    checkoutId,
    payer: '0xpayer',
    nonce,
    payTo: payTo[storeId],
    amount: price,
    validBefore: 2_000n,
    state: 'sent',
    claimedAt: at(block - 2),
    firstSignedAt: at(block - 1),
    resolvedAt: null,
  }
}

function checkoutOf(storeId: StoreId, id: string, status: string, version: number) {
  const terms = { asset, amount: `${price}`, payTo: payTo[storeId] }
  return { id, storeId, orderId: id, status, version, finality: 'included', options: [terms], reserved: [] }
}

const statuses: Readonly<Record<string, string>> = {
  created: 'OPEN',
  reopened: 'OPEN',
  processing: 'PROCESSING',
  completed: 'COMPLETED',
  expired: 'EXPIRED',
}

function eventOf(storeId: StoreId, type: string, checkoutId: string, checkoutVersion: number) {
  return { id: '', storeId, sequence: null, type, checkoutId, checkoutVersion, data: {} }
}

function eventsOf(storeId: StoreId, checkoutId: string, moves: readonly string[], credit?: Credit): Event[] {
  return moves.map((move, i) => {
    const payment =
      move === 'completed' && credit
        ? { transaction: credit.transactionHash, payer: '0xPayer', asset, amount: `${credit.amount}` }
        : null
    const checkout = { id: checkoutId, status: statuses[move] ?? '', payment }
    return { ...eventOf(storeId, `checkout.${move}`, checkoutId, i + 1), data: { checkout } }
  })
}

function createdAnswer(id: string): Answer {
  return {
    kind: 'create',
    storeId: storeOf(id),
    checkoutId: id,
    status: 201,
    body: JSON.stringify({ id }),
    askedAt: at(0),
    answeredAt: at(1),
    key: `key of ${id}`,
    sent: JSON.stringify({ priceAmount: '1.00', priceCurrency: 'USD' }),
  }
}

function refundOf(id: string, payment: Credit): Omit<Refund, 'status'> {
  const { paymentId, payTo: wallet, payer: recipient } = payment
  const fixed = {
    way: 'signed',
    actorType: 'key',
    nonce: null,
    transactionHash: null,
    position: null,
    finality: null,
  }
  const times = { createdAt: at(14), signedAt: null }
  const own = { id, storeId: 'st_a', paymentId, asset, identity: identityOf(payment), wallet, recipient }
  return { ...own, ...fixed, ...times, amount: quarter }
}

function refundEvents(id: string, ...moves: readonly string[]): Event[] {
  const asked = { paymentId: 'pay_0x01', amount: `${quarter}`, recipient: '0xpayer' }
  return moves.map((move) => ({
    ...eventOf('st_a', `refund.${move}`, '', 0),
    ...{ checkoutId: null, checkoutVersion: null, data: { refund: { id, status: move, ...asked } } },
  }))
}

function refundAnswer(id: string): Answer {
  const told = { id, paymentId: 'pay_0x01', amount: `${quarter}`, recipient: '0xpayer' }
  return {
    ...createdAnswer(id),
    kind: 'refund',
    storeId: 'st_a',
    checkoutId: null,
    body: JSON.stringify(told),
  }
}

function payAnswer(id: string, status: number, second: number, transaction?: string): Answer {
  const times = { askedAt: at(second), answeredAt: at(second + 0.1) }
  const asked = { kind: 'pay', storeId: storeOf(id), checkoutId: id, status, body: '{}' } as const
  return { ...asked, ...times, ...(transaction !== undefined && { transaction }) }
}

/** Signs and delivers an event as the server should. */
export function deliver(endpointId: string, { id, type, sequence, checkoutId, data }: Event): Received {
  const body = JSON.stringify({ id, type, sequence, checkoutId, data })
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.1000.${body}`).digest('base64')
  return { endpointId, id, timestamp: '1000', signature: `v1,${signature}`, body, status: 204 }
}

/** One difference from a sound history. */
export type Change = (history: History) => History

export const inBooks =
  (change: (books: Books) => Partial<Books>): Change =>
  (history) => ({ ...history, books: { ...history.books, ...change(history.books) } })
