/**
 * Everything that a run left behind, as the checker judges it: what the database says, what the chain says, what clients
 * were answered, and what the receiver of webhooks got. None of it comes from code of the server.
 */
export type History = {
  readonly books: Books
  readonly chain: Scan
  readonly answers: readonly Answer[]
  readonly received: readonly Received[]
  readonly sightings: readonly Sighting[]
  /** What was still to do a minute after the last fault, in words. */
  readonly undone: readonly string[]
  /** How often the database was put back to an earlier point, in order. */
  readonly restores?: readonly Restore[]
}

/** One restore, by the books on either side of what it took back. */
export type Restore = {
  /** Just before the backup was begun: the backup has all of it. */
  readonly copied: Books
  /** When every process had ended, just before the database was put back. */
  readonly lost: Books
  /** When that was: nothing was answered or delivered after it that the backup does not know. */
  readonly lostAt: Date
  /** What stores were answered that went on from where they were in the lost log, and then from where they were told to. */
  readonly cursors: readonly {
    readonly storeId: string
    readonly status: number
    readonly code: string
    readonly resumedStatus: number
  }[]
}

/** A broken invariant, with the rows that show it. */
export type Violation = { readonly invariant: Invariant; readonly what: string }

export const invariants = {
  I1: 'a COMPLETED checkout has one exact credit, which the chain has, as it was asked for',
  I2: 'no log and no authorization is credited twice, and no checkout has two exact credits',
  I3: 'what was paid on the chain is credited',
  I4: 'a checkout has one unresolved payment at a time, and its store is told of a second charge',
  I5: 'balances are the sum of what moved: wallets, and the settlers’ gas',
  I6: 'settlers use each nonce once, with bytes that were committed before any node saw them',
  I7: 'statuses change only as documented, and what is called dead can never pay',
  I8: 'what a client was told is true for good',
  I9: 'nobody is asked to sign while an earlier signature may pay, or what the chain took back may return',
  I10: 'every change has one event, in order, without gaps, and it is delivered word for word',
  I11: 'the same key and body get the same answer, and make one checkout',
  I12: 'no store sees another’s checkout by its id',
  I13: 'the events alone say every checkout’s status and what paid it',
  I14: 'two minutes after the last fault nothing is left to do',
} as const

export type Invariant = keyof typeof invariants

export type Books = {
  readonly firstBlock: number
  readonly checkouts: readonly Checkout[]
  readonly authorizations: readonly Authorization[]
  /** Orphaned ones too. */
  readonly credits: readonly Credit[]
  readonly broadcasts: readonly Broadcast[]
  readonly settlers: readonly { readonly address: string; readonly nextNonce: number }[]
  readonly wallets: readonly string[]
  /** In the order in which they were written. */
  readonly events: readonly Event[]
  readonly deliveries: readonly Delivery[]
  readonly endpoints: readonly Endpoint[]
}

export type Terms = { readonly asset: string; readonly amount: string; readonly payTo: string }

export type Checkout = {
  readonly id: string
  readonly storeId: string
  readonly orderId: string
  readonly status: string
  readonly version: number
  readonly finality: string
  readonly options: readonly Terms[]
  /** What plain transfers to it must be. */
  readonly reserved: readonly Terms[]
}

export type Authorization = {
  readonly checkoutId: string | null
  readonly payer: string
  readonly nonce: string
  readonly payTo: string
  readonly amount: bigint
  readonly validBefore: bigint
  readonly state: string
  readonly claimedAt: Date
  /** When it was found that it would never pay; null while it may, or has. */
  readonly resolvedAt: Date | null
  /** When bytes that carry it were first signed. */
  readonly firstSignedAt: Date | null
}

export type Credit = {
  readonly paymentId: string
  readonly checkoutId: string | null
  readonly blockHash: string
  readonly blockNumber: number
  readonly logIndex: number
  readonly transactionHash: string
  readonly asset: string
  readonly payer: string
  readonly nonce: string | null
  readonly payTo: string
  readonly amount: bigint
  readonly disposition: string
  readonly isOrphaned: boolean
  readonly includedAt: Date
  readonly orphanedAt: Date | null
  readonly reversedAt: Date | null
  readonly isAccepted: boolean
}

export type Broadcast = {
  readonly hash: string
  readonly settler: string
  readonly nonce: number
  /** Recipient and calldata of the signed bytes. */
  readonly call: string
  readonly isNoOp: boolean
}

export type Event = {
  readonly id: string
  readonly storeId: string
  readonly sequence: number | null
  readonly type: string
  readonly checkoutId: string | null
  readonly checkoutVersion: number | null
  readonly data: {
    readonly checkout?: {
      readonly id: string
      readonly status: string
      readonly payment: { readonly transaction: string } | null
    } | null
  }
}

type Delivery = { readonly eventId: string; readonly endpointId: string; readonly state: string }

type Endpoint = { readonly id: string; readonly storeId: string; readonly secret: string }

export type Transfer = {
  readonly blockHash: string
  readonly blockNumber: number
  readonly transactionHash: string
  readonly logIndex: number
  readonly asset: string
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** Of the AuthorizationUsed that stands directly before it, by the same payer in the same transaction. */
  readonly nonce: string | null
}

export type Scan = {
  readonly head: number
  readonly headTime: number
  readonly safe: number
  readonly finalized: number
  readonly transfers: readonly Transfer[]
  /** `payer nonce` of what was canceled. */
  readonly canceled: ReadonlySet<string>
  /** Transactions of the settlers, in the order of the chain. */
  readonly mined: readonly {
    readonly hash: string
    readonly from: string
    readonly nonce: number
    readonly feeWei: bigint
  }[]
  /** Units of the token, by account: of wallets and settlers. */
  readonly balances: ReadonlyMap<string, bigint>
  readonly settlerFunds: ReadonlyMap<string, { readonly startWei: bigint; readonly endWei: bigint }>
}

/** One request and its answer, as its client saw them. Requests without an answer prove nothing and are not here. */
export type Answer = {
  readonly kind: 'create' | 'pay' | 'read'
  /** Whose key asked, or whose checkout is paid. */
  readonly storeId: string
  readonly checkoutId: string | null
  readonly status: number
  readonly body: string
  readonly askedAt: Date
  readonly answeredAt: Date
  /** Of a create. */
  readonly key?: string
  readonly sent?: string
  /** The transaction that a 200 to a payer named. */
  readonly transaction?: string
}

/** A delivery as the receiver got it, and what it answered. */
export type Received = {
  readonly endpointId: string
  readonly id: string
  readonly timestamp: string
  readonly signature: string
  readonly body: string
  readonly status: number
}

/** The first time that signed bytes passed the node's door, and whether the database had them by then. */
export type Sighting = {
  readonly hash: string
  /** Null where the database could not be asked at that moment. */
  readonly isCommitted: boolean | null
}
