/**
 * The history of a run, which is the checker's input: the contents of the database ("books"), a scan of the chain, the
 * answers that clients got, and the webhooks that the receiver got. The harness reads all of it without server code.
 */
export type History = {
  readonly books: Books
  readonly chain: Scan
  readonly answers: readonly Answer[]
  /** Every payment that a client sent for a checkout, answered or not. */
  readonly presented: readonly Presented[]
  readonly received: readonly Received[]
  readonly sightings: readonly Sighting[]
  /** The work that was still left at the time limit after the last fault, in sentences. */
  readonly undone: readonly string[]
  /** Every restore of the database to an earlier point, in order. */
  readonly restores?: readonly Restore[]
  /** The books of the other cells on the same chain. */
  readonly neighbours?: readonly Books[]
  /** How far two processes' clocks may have differed. Most times are PostgreSQL's. */
  readonly clocksDifferMs?: number
}

/** One restore, with the books before and after the changes that it undid. */
export type Restore = {
  /** Just before the backup started: the backup contains all of it. */
  readonly copied: Books
  /** After every process had exited, just before the database was restored. */
  readonly lost: Books
  /** When `lost` was read. Every later answer and delivery comes from the restored database. */
  readonly lostAt: Date
  /** The answers to stores that continued from a cursor of the lost log, and then from the cursor they were given. */
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
  I1: 'a COMPLETED checkout has one exact credit, the chain has it at the required finality, and no payment is safe or final before its block is',
  I2: 'no transfer log and no authorization is credited twice, and no checkout has two exact credits',
  I3: 'every payment on the chain is credited',
  I4: 'a checkout has at most one unresolved payment, and its store is notified of a second charge',
  I5: 'wallet balances, settlers’ gas and the fees on record equal the sum of what moved',
  I6: 'a settler uses each nonce once, and its signed bytes are committed before any node sees them',
  I7: 'statuses change only as documented, and a payment declared dead can never pay',
  I8: 'a success answer stays true, unless a reorganisation undoes the payment and the store is notified',
  I9: 'no payer is asked to sign while an earlier signature may pay, or a reorganised payment may return',
  I10: 'every change has one event, in order, without gaps, delivered word for word',
  I11: 'the same idempotency key and body get the same answer and create one checkout or refund',
  I12: 'no store sees another store’s checkout by its id',
  I13: 'the events alone give every checkout’s status and payments, and the refunds, as the chain has them',
  I14: 'no work is left two minutes after the last fault, or seven after a restore',
  I15: 'no refund is paid twice, above its payment, without its transfer, to another recipient, or for a payment that is gone; no payment is accepted once it went back',
  I16: 'no wallet, settler, checkout, authorization or transfer is in the books of two cells',
  I17: 'a checkout has its store’s price, and pays a wallet of that store',
  I18: 'a checkout is paid by a payment that was presented for it or names it, and by no older transfer',
  I19: 'each final payment and refund is one line in its store’s books, and a wallet’s lines add up to what the chain moved',
} as const

export type Invariant = keyof typeof invariants

export type Books = {
  readonly network: string
  readonly firstBlock: number
  readonly checkouts: readonly Checkout[]
  readonly authorizations: readonly Authorization[]
  /** Includes orphaned ones. */
  readonly credits: readonly Credit[]
  readonly broadcasts: readonly Broadcast[]
  readonly settlers: readonly { readonly address: string; readonly nextNonce: number }[]
  readonly wallets: readonly string[]
  /** Which stores have registered which of the wallets, now or before. */
  readonly owners: readonly { readonly storeId: string; readonly wallet: string }[]
  /** The cost of mined transactions, as far as it was read. */
  readonly costs: readonly { readonly settler: string; readonly nonce: number; readonly wei: bigint }[]
  /** In the order in which they were written. */
  readonly events: readonly Event[]
  readonly deliveries: readonly Delivery[]
  readonly endpoints: readonly Endpoint[]
  readonly refunds: readonly Refund[]
  readonly refundTotals: readonly RefundTotal[]
  /** Those of other networks too: their numbers are the stores’. */
  readonly movements: readonly Movement[]
  /** Payments and refunds that are still to be booked. */
  readonly due: readonly string[]
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
  /** The exact amounts reserved for plain transfers to it. */
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
  /** When it was proven that it will never pay; null while it still may, or if it has paid. */
  readonly resolvedAt: Date | null
  /** When a transaction that carries it was first signed. */
  readonly firstSignedAt: Date | null
}

export type Credit = {
  readonly paymentId: string
  readonly checkoutId: string | null
  readonly blockHash: string
  readonly blockNumber: number
  readonly logIndex: number
  /** Among equal transfers of its transaction. */
  readonly position: number
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
  readonly safeAt: Date | null
  readonly finalizedAt: Date | null
  /** When its store accepted it for a checkout that it did not match. */
  readonly acceptedAt: Date | null
}

export type Broadcast = {
  readonly hash: string
  readonly settler: string
  readonly nonce: number
  /** Recipient and calldata of the signed bytes. */
  readonly call: string
  readonly isNoOp: boolean
}

export type Refund = {
  readonly id: string
  readonly storeId: string
  readonly paymentId: string
  readonly asset: string
  /** Identifies the payment on the chain. */
  readonly identity: string
  readonly wallet: string
  readonly amount: bigint
  readonly recipient: string | null
  readonly way: string
  readonly status: string
  /** Who created it: `key` or `member`. */
  readonly actorType: string
  readonly nonce: string | null
  readonly transactionHash: string | null
  readonly position: number | null
  readonly finality: string | null
  readonly createdAt: Date
  readonly signedAt: Date | null
}

export type Movement = {
  readonly storeId: string
  /** Of its store, over all networks. */
  readonly number: number
  readonly network: string
  readonly type: string
  readonly bookedAt: Date
  readonly asset: string
  readonly amount: bigint
  readonly wallet: string | null
  readonly transactionHash: string | null
  readonly paymentId: string
  readonly refundId: string | null
  readonly reverses: number | null
}

export type RefundTotal = {
  readonly paymentId: string
  readonly asset: string
  readonly identity: string
  readonly amount: bigint
  readonly reserved: bigint
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
      readonly payment: ToldPayment | null
    } | null
    readonly payment?: ToldPayment & { readonly id: string; readonly payTo: string }
    readonly refund?: {
      readonly id: string
      readonly status: string
      readonly paymentId: string
      readonly amount: string
      readonly recipient: string | null
    }
    readonly webhookEndpoint?: { readonly id: string }
  }
}

type ToldPayment = {
  readonly transaction: string
  readonly payer: string
  readonly asset: string
  readonly amount: string
}

type Delivery = { readonly eventId: string; readonly endpointId: string; readonly state: string }

type Endpoint = {
  readonly id: string
  readonly storeId: string
  readonly secret: string
  /** Whether it gets one event at a time, in the log's order. */
  readonly isOrdered: boolean
}

export type Transfer = {
  readonly blockHash: string
  readonly blockNumber: number
  /** Its block's time, in seconds. */
  readonly blockTime: number
  readonly transactionHash: string
  readonly logIndex: number
  readonly asset: string
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** The nonce of the AuthorizationUsed directly before it, by the same payer in the same transaction. */
  readonly nonce: string | null
}

/** A transaction in a block, and what it cost there. */
export type Mined = {
  readonly hash: string
  readonly from: string
  readonly nonce: number
  readonly feeWei: bigint
}

export type Scan = {
  readonly head: number
  readonly headTime: number
  readonly safe: number
  readonly finalized: number
  /**
   * When the chain first had each length, in milliseconds; a reorganisation never makes it shorter. Empty if it was not
   * recorded.
   */
  readonly reachedAt: ReadonlyMap<number, number>
  readonly transfers: readonly Transfer[]
  /** `payer nonce` of canceled authorizations. */
  readonly canceled: ReadonlySet<string>
  /** Transactions of the settlers, in chain order. */
  readonly mined: readonly Mined[]
  /** Transactions that were in blocks which a reorganisation has replaced. */
  readonly replaced: readonly Mined[]
  /** Token balances of wallets and settlers, in units. */
  readonly balances: ReadonlyMap<string, bigint>
  readonly settlerFunds: ReadonlyMap<string, { readonly startWei: bigint; readonly endWei: bigint }>
}

/** One request and its answer, as the client saw them. Unanswered requests prove nothing and are not recorded. */
export type Answer = {
  readonly kind: 'create' | 'pay' | 'read' | 'refund' | 'decide'
  /** The store whose key was used, or whose checkout is paid. */
  readonly storeId: string
  readonly checkoutId: string | null
  readonly status: number
  readonly body: string
  readonly askedAt: Date
  readonly answeredAt: Date
  /** The idempotency key of a create. */
  readonly key?: string
  readonly sent?: string
  /** The transaction that a 200 to a payer named. */
  readonly transaction?: string
}

/** A payment by signature, as a client sent it. */
export type Presented = {
  readonly checkoutId: string
  readonly payer: string
  readonly nonce: string
  readonly sentAt: Date
}

/** A delivery as the receiver got it, and the status that it answered. */
export type Received = {
  readonly endpointId: string
  readonly id: string
  readonly timestamp: string
  readonly signature: string
  readonly body: string
  readonly status: number
}

/** The first time that signed bytes reached a node, and whether they were committed by then. */
export type Sighting = {
  readonly hash: string
  /** Null if the database could not be queried at that moment. */
  readonly isCommitted: boolean | null
}
