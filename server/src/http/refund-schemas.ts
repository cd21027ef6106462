import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import { closed, cursor, limit, nextCursor, nullable, of, timestamp } from './schemas.ts'

/** The shapes of refunds. */
const refundStatuses = ['REQUESTED', 'SIGNED', 'SENT', 'COMPLETED', 'DECLARED', 'FAILED', 'CANCELED'] as const

const RefundClaim = of<Wire.RefundClaim>()(
  Type.Object(
    {
      status: Type.Enum(['OPEN', 'NAMED', 'CONFIRMED', 'EXPIRED'], {
        description:
          'OPEN: the buyer has not answered. NAMED: a member of the store has to confirm the code that the buyer tells.',
      }),
      expiresAt: timestamp(),
      address: Type.Optional(Type.String({ description: 'What the buyer named.' })),
      code: Type.Optional(
        Type.String({ description: 'Besides here, only the browser that named the address shows it.' }),
      ),
    },
    { ...closed, description: 'The link with which the buyer names an address. Absent if none was made.' },
  ),
)

export const Refund = of<Wire.Refund>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with rf_.' }),
      paymentId: Type.String(),
      checkoutId: nullable(Type.String({ description: 'The checkout that the payment belongs to.' })),
      orderId: nullable(Type.String()),
      status: Type.Enum([...refundStatuses]),
      way: Type.Enum(['signed', 'sent'], {
        description:
          'signed: the wallet that was paid signs, and Farthing sends it. sent: the store sends it by itself.',
      }),
      network: Type.String({ description: 'CAIP-2 identifier.' }),
      asset: Type.String(),
      amount: Type.String({ description: 'Integer amount in the asset’s smallest unit.' }),
      from: Type.String({ description: 'The store’s wallet that was paid.' }),
      recipient: nullable(Type.String({ description: 'Null until the buyer has named an address.' })),
      reason: nullable(Type.String()),
      transaction: nullable(Type.String()),
      finality: nullable(Type.Enum(['included', 'safe', 'finalized'])),
      failure: nullable(Type.String({ description: 'Why it failed, or why it is not done yet.' })),
      isCanceling: Type.Boolean({
        description: 'Whether it was canceled, but what was handed out to be signed could still move money.',
      }),
      declared: Type.Optional(
        Type.String({ description: 'What the store says about a payment that cannot be proven.' }),
      ),
      createdAt: timestamp(),
      completedAt: nullable(timestamp()),
      claim: Type.Optional(RefundClaim),
    },
    closed,
  ),
)

export const RefundPage = of<Wire.Page<Wire.Refund>>()(
  Type.Object({ data: Type.Array(Refund), nextCursor }, closed),
)

export const RefundQuery = Type.Object(
  {
    limit,
    cursor,
    paymentId: Type.Optional(Type.String({ maxLength: 40, description: 'Only refunds of this payment.' })),
    checkoutId: Type.Optional(
      Type.String({ maxLength: 40, description: 'Only refunds of this checkout’s payments.' }),
    ),
    status: Type.Optional(Type.Enum([...refundStatuses])),
  },
  closed,
)

export const CreateRefund = of<Wire.CreateRefund>()(
  Type.Object(
    {
      amount: Type.Optional(
        Type.String({
          pattern: '^[1-9]\\d{0,77}$',
          description:
            'Integer amount in the asset’s smallest unit. Default: all that is left of the payment.',
          examples: ['5000000'],
        }),
      ),
      recipient: Type.Optional(
        Type.String({
          maxLength: 100,
          description:
            'Whoever signed the payment, which is the default. A key cannot choose anybody else; a member of the store can, in the console.',
        }),
      ),
      reason: Type.Optional(
        Type.String({
          description: '1 to 500 bytes of plain text, which the buyer reads.',
          examples: ['One cup was broken'],
        }),
      ),
      way: Type.Optional(
        Type.Enum(['signed', 'sent'], {
          default: 'signed',
          description:
            'signed: the wallet that was paid signs, and Farthing sends it. sent: the store sends it by itself and names the transaction. It stays as it is.',
        }),
      ),
    },
    closed,
  ),
)

const RefundTypedData = of<Wire.RefundTypedData>()(
  Type.Object(
    {
      domain: Type.Object(
        {
          name: Type.String(),
          version: Type.String(),
          chainId: Type.Integer(),
          verifyingContract: Type.String(),
        },
        closed,
      ),
      types: Type.Record(
        Type.String(),
        Type.Array(Type.Object({ name: Type.String(), type: Type.String() }, closed)),
      ),
      primaryType: Type.String(),
      message: Type.Object(
        {
          from: Type.String(),
          to: Type.String(),
          value: Type.String(),
          validAfter: Type.String(),
          validBefore: Type.String(),
          nonce: Type.String(),
        },
        closed,
      ),
    },
    {
      ...closed,
      description:
        'EIP-712 typed data as eth_signTypedData_v4 takes it. Compare recipient and amount before you sign.',
    },
  ),
)

const expiresAt = Type.String({
  format: 'date-time',
  description: 'Until when it can be signed and presented.',
})

export const PreparedRefund = of<Wire.PreparedRefund>()(
  Type.Union([
    Type.Object({ refund: Refund, typedData: RefundTypedData, expiresAt }, closed),
    Type.Object(
      {
        refund: Refund,
        transaction: Type.String({
          description: 'Where wallets sign whole transactions: the one to sign, in base64.',
        }),
        expiresAt,
      },
      closed,
    ),
  ]),
)

const oneOfBoth = { ...closed, minProperties: 1, maxProperties: 1 }

export const PresentRefund = of<Wire.PresentRefund>()(
  Type.Object(
    {
      signature: Type.Optional(
        Type.String({
          maxLength: 20_000,
          description:
            'Hex, up to 4,096 bytes: the signature of typedData, or what a contract wallet accepts by ERC-1271, also wrapped by ERC-6492.',
        }),
      ),
      transaction: Type.Optional(
        Type.String({
          maxLength: 4_000,
          description: 'Where wallets sign whole transactions: the signed one, in base64.',
        }),
      ),
    },
    oneOfBoth,
  ),
)

export const NameTransaction = of<Wire.NameTransaction>()(
  Type.Object(
    {
      transaction: Type.Optional(
        Type.String({ maxLength: 200, description: 'The hash of the transaction that paid the refund.' }),
      ),
      reference: Type.Optional(
        Type.String({
          description:
            'Instead of a transaction, if no chain shows it here: 1 to 500 bytes. The refund is DECLARED for good.',
          examples: ['Withdrawal 4711 at the exchange'],
        }),
      ),
    },
    oneOfBoth,
  ),
)

export const RefundClaimLink = of<Wire.RefundClaimLink>()(
  Type.Object(
    {
      url: Type.String({ description: 'For the buyer. Shown only in this answer.' }),
      expiresAt: timestamp(),
    },
    closed,
  ),
)
