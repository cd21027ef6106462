import type { Finality } from './wire.ts'

/**
 * REQUESTED: not signed yet. SIGNED: the wallet's signature is here. SENT: a transaction is on its way.
 * COMPLETED: its transfer is on the chain. DECLARED: the store says that it paid in a way that cannot be proven.
 */
export type RefundStatus = 'REQUESTED' | 'SIGNED' | 'SENT' | 'COMPLETED' | 'DECLARED' | 'FAILED' | 'CANCELED'

/** `signed`: the wallet that received the payment signs, and Farthing sends it without gas. `self-sent`: the store sends it by itself. */
export type RefundWay = 'signed' | 'self-sent'

/** Money that goes back to a buyer: all of a payment, or a part of it. */
export type Refund = {
  id: string
  paymentId: string
  /** The checkout that the payment belongs to, and its order. */
  checkoutId: string | null
  orderId: string | null
  status: RefundStatus
  way: RefundWay
  /** CAIP-2 identifier. */
  network: string
  asset: string
  /** Integer amount in the asset's smallest unit. */
  amount: string
  /** The store's wallet that received the payment. */
  from: string
  /** Null until the buyer has named an address. */
  recipient: string | null
  reason: string | null
  /** Null while there is none. */
  transaction: string | null
  /** How final the transfer is; null while there is none on the chain. */
  finality: Finality | null
  /** Why it failed, or why it is not done yet. */
  failure: string | null
  /** Whether a cancellation was requested and is waiting until no signature for the refund can move money. */
  isCanceling: boolean
  /** What the store says about a payment that cannot be proven. Absent unless DECLARED. */
  declared?: string
  createdAt: string
  completedAt: string | null
  /** The link with which the buyer names an address. Absent if none was made. */
  addressRequest?: AddressRequest
}

/** OPEN: the buyer has not answered. NAMED: a member of the store has to confirm the code. */
export type AddressRequestStatus = 'OPEN' | 'NAMED' | 'CONFIRMED' | 'EXPIRED'

export type AddressRequest = {
  status: AddressRequestStatus
  expiresAt: string
  /** The address that the buyer named, and the code. Only the buyer's browser shows the code too. */
  address?: string
  code?: string
}

export type CreateRefund = {
  /** Integer amount in the asset's smallest unit. Default: all that is left of the payment. */
  amount?: string
  /** Default: the payer. Only a member of the store can choose another. */
  recipient?: string
  /** The reason that the buyer reads, in plain text of up to 500 bytes. */
  reason?: string
  /** Default `signed`. */
  way?: RefundWay
}

/** EIP-712 typed data as `eth_signTypedData_v4` takes it: an EIP-3009 transfer from the store's wallet. */
export type RefundTypedData = {
  domain: { name: string; version: string; chainId: number; verifyingContract: string }
  types: Record<string, { name: string; type: string }[]>
  primaryType: string
  message: {
    from: string
    to: string
    value: string
    validAfter: string
    validBefore: string
    nonce: string
  }
}

/** What the wallet has to sign, before `expiresAt`: typed data on EVM networks, a transaction in base64 on Solana. */
export type PreparedRefund =
  | { refund: Refund; typedData: RefundTypedData; expiresAt: string }
  | { refund: Refund; transaction: string; expiresAt: string }

/**
 * Exactly one of the two. `signature`: in hex; a contract wallet may sign by ERC-1271, also wrapped by ERC-6492.
 * `transaction`: the signed transaction in base64, on Solana.
 */
export type PresentRefund = { signature?: string; transaction?: string }

/**
 * Exactly one of the two: the transaction of a refund that the store sent itself, or a reference to evidence that is on
 * no chain.
 */
export type NameTransaction = { transaction?: string; reference?: string }

/** The link at which the buyer names an address for the money. It is shown once: only a hash of it is stored. */
export type AddressRequestLink = { url: string; expiresAt: string }
