import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import { metadataKeysMax, metadataValueCharactersMax } from '../checkouts/metadata.ts'
import { Refund } from './refund-schemas.ts'
import { Actor, closed, cursor, limit, nextCursor, nullable, of, timestamp, webUrl } from './schemas.ts'

/** The shapes of checkouts and payments. */
const statuses = ['OPEN', 'PROCESSING', 'COMPLETED', 'EXPIRED', 'CANCELED'] as const

const checkoutFields = {
  id: Type.String({ description: 'Begins with ch_.' }),
  orderId: Type.String({ description: 'The store’s own order identifier, exactly as sent.' }),
  priceAmount: Type.String({ description: 'Decimal amount in priceCurrency, exactly as sent.' }),
  priceCurrency: Type.String({ description: 'ISO 4217 code in upper case.' }),
  status: Type.Enum([...statuses]),
  expiresAt: Type.String({
    format: 'date-time',
    description: 'The checkout cannot be paid after this time.',
  }),
  checkoutUrl: Type.String({
    description: 'The hosted payment page. x402 clients can pay at this URL too.',
  }),
  createdAt: timestamp(),
  successRedirectUrl: nullable(Type.String()),
  cancelUrl: Type.Optional(Type.String({ description: 'Absent if none was given.' })),
}

export const Checkout = of<Wire.Checkout>()(Type.Object(checkoutFields, closed))

const paymentFields = {
  transaction: Type.String(),
  payer: Type.String(),
  network: Type.String({ description: 'CAIP-2 identifier.' }),
  asset: Type.String(),
  amount: Type.String({ description: 'Integer amount in the asset’s smallest unit.' }),
  finality: Type.Enum(['included', 'safe', 'finalized', 'reversed']),
}

export const CheckoutPayment = of<Wire.CheckoutPayment>()(Type.Object(paymentFields, closed))

const dispositions = ['late', 'underpaid', 'overpaid', 'unmatched'] as const

export const PaymentHint = of<Wire.PaymentHint>()(
  Type.Object({ checkoutId: Type.String(), disposition: Type.Enum([...dispositions]) }, closed),
)

const PaymentNote = of<Wire.PaymentNote>()(
  Type.Object(
    { text: Type.String(), actor: Actor, notedAt: timestamp() },
    { ...closed, description: 'What the store has noted about it, for itself; absent if nothing.' },
  ),
)

export const Payment = of<Wire.Payment>()(
  Type.Object(
    {
      ...paymentFields,
      id: Type.String({ description: 'Begins with pay_.' }),
      checkoutId: nullable(Type.String()),
      payTo: Type.String(),
      disposition: Type.Enum(['exact', ...dispositions]),
      includedAt: timestamp(),
      safeAt: nullable(timestamp()),
      finalizedAt: nullable(timestamp()),
      acceptedAt: nullable(timestamp()),
      dismissedAt: nullable(timestamp()),
      hints: Type.Array(PaymentHint, {
        description:
          'For a payment without a checkout: the checkouts whose buyers named its transaction. A hint proves nothing.',
      }),
      note: Type.Optional(PaymentNote),
      refundedAmount: Type.Optional(
        Type.String({
          description:
            'What completed refunds have returned, in the asset’s smallest unit. Only when the payment is read by its id, and absent if it has had no refunds.',
        }),
      ),
      refundable: Type.Optional(
        Type.String({
          description:
            'What can still be refunded: refunds that are on their way have taken theirs. Present like refundedAmount.',
        }),
      ),
    },
    closed,
  ),
)

const Rate = of<Wire.Rate>()(
  Type.Object(
    {
      rate: Type.String({ description: 'US dollars for one unit of priceCurrency.' }),
      source: Type.String(),
      time: timestamp(),
    },
    { ...closed, description: 'How the price was converted; absent if it needed no rate.' },
  ),
)

export const StoreCheckout = of<Wire.StoreCheckout>()(
  Type.Object(
    {
      ...checkoutFields,
      payment: nullable(CheckoutPayment),
      description: Type.Optional(Type.String({ description: 'Absent if none was given.' })),
      metadata: Type.Optional(
        Type.Record(Type.String(), Type.String(), { description: 'Absent if none was given.' }),
      ),
      rate: Type.Optional(Rate),
      refundedAmount: Type.Optional(
        Type.String({
          description:
            'What refunds have returned, in the asset’s smallest unit. Absent if there are no refunds.',
        }),
      ),
      refunds: Type.Optional(Type.Array(Refund, { description: 'Oldest first. Absent if there are none.' })),
    },
    closed,
  ),
)

export const CreateCheckout = of<Wire.CreateCheckout>()(
  Type.Object(
    {
      orderId: Type.String({ description: '1 to 255 bytes of UTF-8. Need not be unique.' }),
      priceAmount: Type.String({
        description: 'A decimal above zero, as a string: at most 15 digits before the point and 6 after it.',
        examples: ['12.50'],
      }),
      priceCurrency: Type.String({
        description: 'ISO 4217 code, in upper or lower case.',
        examples: ['USD'],
      }),
      successRedirectUrl: Type.Optional(
        webUrl(
          'Where the buyer goes after paying. An https URL without credentials. Null is the same as leaving it out.',
        ),
      ),
      cancelUrl: Type.Optional(
        webUrl('Where a buyer who does not pay can go back to. The same rules as for successRedirectUrl.'),
      ),
      expiresInSeconds: Type.Optional(
        Type.Integer({
          minimum: 300,
          maximum: 604_800,
          description: 'Default: 86400, or 3600 if an exchange rate is locked.',
        }),
      ),
      description: Type.Optional(
        nullable(
          Type.String({
            description: 'What is paid for: 1 to 500 bytes of plain text, shown on the payment page.',
            examples: ['Two tickets for Saturday'],
          }),
        ),
      ),
      metadata: Type.Optional(
        Type.Record(Type.String(), Type.String({ maxLength: metadataValueCharactersMax }), {
          maxProperties: metadataKeysMax,
          description:
            'The store’s own values, by names of 1 to 40 bytes. Returned to the store and part of its events; the buyer never sees them.',
        }),
      ),
    },
    closed,
  ),
)

export const CheckoutPage = of<Wire.Page<Wire.StoreCheckout>>()(
  Type.Object({ data: Type.Array(StoreCheckout), nextCursor }, closed),
)

const price = (about: string) =>
  Type.Optional(
    Type.String({
      pattern: '^(0|[1-9]\\d{0,14})(\\.\\d{1,6})?$',
      description: `${about} Needs priceCurrency.`,
    }),
  )
const units = (about: string) =>
  Type.Optional(Type.String({ pattern: '^(0|[1-9]\\d{0,77})$', description: about }))

export const CheckoutQuery = Type.Object(
  {
    limit,
    cursor,
    status: Type.Optional(Type.Enum([...statuses])),
    orderId: Type.Optional(Type.String({ maxLength: 255 })),
    priceCurrency: Type.Optional(Type.String({ maxLength: 3, description: 'ISO 4217 code.' })),
    minPrice: price('Only checkouts of this price or more.'),
    maxPrice: price('Only checkouts of this price or less.'),
    createdFrom: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only checkouts created at this time or later.' }),
    ),
    createdBefore: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only checkouts created before this time.' }),
    ),
  },
  closed,
)

export const PaymentQuery = Type.Object(
  {
    limit,
    cursor,
    checkoutId: Type.Optional(Type.String({ maxLength: 40 })),
    disposition: Type.Optional(Type.Enum(['exact', ...dispositions])),
    network: Type.Optional(Type.String({ maxLength: 100, description: 'CAIP-2 identifier.' })),
    payer: Type.Optional(Type.String({ maxLength: 100, description: 'The sender’s address.' })),
    transaction: Type.Optional(Type.String({ maxLength: 100, description: 'The transaction’s hash.' })),
    minAmount: units('Only payments of this many smallest units of their asset or more.'),
    maxAmount: units('Only payments of this many smallest units of their asset or less.'),
    createdFrom: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only payments first seen at this time or later.' }),
    ),
    createdBefore: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only payments first seen before this time.' }),
    ),
  },
  closed,
)
