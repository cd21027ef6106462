import type * as Wire from '@farthing/sdk'
import Type, { type Static, type TSchema } from 'typebox'

/**
 * The shapes of requests and answers. They validate requests, are part of the OpenAPI document, and must match the SDK's
 * types: a mismatch doesn't compile.
 */
type Agrees<A, B> = [A] extends [B] ? ([B] extends [A] ? unknown : never) : never
export function of<Wanted>() {
  return <Schema extends TSchema>(schema: Schema & Agrees<Static<Schema>, Wanted>): Schema => schema
}

export const closed = { additionalProperties: false }
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])
export const timestamp = () => Type.String({ format: 'date-time' })

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

export const dispositions = ['late', 'underpaid', 'overpaid', 'unmatched'] as const

export const PaymentHint = of<Wire.PaymentHint>()(
  Type.Object({ checkoutId: Type.String(), disposition: Type.Enum([...dispositions]) }, closed),
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
    },
    closed,
  ),
)

export const StoreCheckout = of<Wire.StoreCheckout>()(
  Type.Object({ ...checkoutFields, payment: nullable(CheckoutPayment) }, closed),
)

const webUrl = (description: string) => nullable(Type.String({ maxLength: 2048, description }))

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
    },
    closed,
  ),
)

export const FinalityRule = of<Wire.FinalityRule>()(
  Type.Object(
    {
      minAmount: Type.String({ pattern: '^(0|[1-9]\\d{0,14})(\\.\\d{1,6})?$', description: 'In USDC.' }),
      finality: Type.Enum(['included', 'safe', 'finalized']),
    },
    closed,
  ),
)

const storeSettings = {
  logoUrl: nullable(
    Type.String({
      maxLength: 12_288,
      description:
        'A PNG, JPEG, WebP or SVG as data:image/…;base64,… is shown on the payment page. An https URL is stored but not shown, because the page loads nothing from other hosts.',
    }),
  ),
  supportEmail: nullable(
    Type.String({
      maxLength: 254,
      description: 'Where buyers can write to the store. Shown on its payment pages.',
      examples: ['help@shop.example'],
    }),
  ),
  supportUrl: webUrl('The store’s page for questions, an https URL. Linked on its payment pages.'),
  finalityPolicy: Type.Array(FinalityRule, {
    minItems: 1,
    maxItems: 10,
    description: 'The finality that a payment must reach before its checkout is COMPLETED, by amount.',
  }),
}

const GasQuota = of<Wire.GasQuota>()(
  Type.Object(
    {
      network: Type.String({ description: 'CAIP-2 identifier.' }),
      currency: Type.String({ description: 'The network’s native currency, in which the amounts are.' }),
      spent: Type.String(),
      perDay: Type.String(),
      resetsAt: timestamp(),
    },
    {
      ...closed,
      description:
        'What settlements for the store have cost today, failed ones included. Once spent reaches perDay, payments to the store get 503 settlement_unavailable until resetsAt.',
    },
  ),
)

export const Store = of<Wire.Store>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with st_.' }),
      mode: Type.Enum(['live', 'test']),
      name: Type.String(),
      ...storeSettings,
      accentColor: nullable(Type.String()),
      walletChanges: Type.Enum(['key', 'member'], {
        description:
          'What it takes to change the wallet that new checkouts are paid to: a key, or also an owner who confirms it in the console. Owners set it there; the default is member for live stores that have an owner.',
      }),
      createdAt: timestamp(),
      gas: Type.Optional(
        Type.Array(GasQuota, { description: 'One per network with a limit; absent if there is none.' }),
      ),
    },
    closed,
  ),
)

export const UpdateStore = of<Wire.UpdateStore>()(
  Type.Object(
    {
      name: Type.Optional(Type.String({ description: '1 to 100 bytes.' })),
      logoUrl: Type.Optional(storeSettings.logoUrl),
      accentColor: Type.Optional(nullable(Type.String({ pattern: '^#[0-9a-fA-F]{6}$' }))),
      supportEmail: Type.Optional(storeSettings.supportEmail),
      supportUrl: Type.Optional(storeSettings.supportUrl),
      finalityPolicy: Type.Optional(storeSettings.finalityPolicy),
    },
    { ...closed, minProperties: 1 },
  ),
)

const sharedElsewhere = Type.Boolean({
  description:
    'Whether the wallet is also paid by other means than this deployment, as the store says. A wallet for this alone is better.',
})
export const UpdateWallet = of<Wire.UpdateWallet>()(Type.Object({ sharedElsewhere }, closed))

export const WalletChallenge = of<Wire.WalletChallenge>()(
  Type.Object(
    {
      walletId: Type.String(),
      message: Type.String({
        description:
          'The text to sign with the wallet, exactly as it is: with personal_sign (EIP-191) or, on Solana, signMessage.',
      }),
      expiresAt: timestamp(),
    },
    closed,
  ),
)

export const ProveWallet = of<Wire.ProveWallet>()(
  Type.Object(
    {
      signature: Type.String({
        maxLength: 16_384,
        description:
          'Hex with 0x; of a contract wallet, what it accepts by ERC-1271. Of a Solana wallet, 64 bytes in base58.',
      }),
    },
    closed,
  ),
)

export const RegisterWallet = of<Wire.RegisterWallet>()(
  Type.Object(
    {
      walletAddress: Type.String({ maxLength: 100, description: 'In the format of its network family.' }),
      custodialType: Type.Enum(['CUSTODIAL', 'NON_CUSTODIAL']),
    },
    closed,
  ),
)

export const Wallet = of<Wire.Wallet>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with wal_.' }),
      storeId: Type.String(),
      family: Type.Enum(['EVM', 'SOLANA']),
      walletAddress: Type.String(),
      custodialType: Type.Enum(['CUSTODIAL', 'NON_CUSTODIAL']),
      payable: Type.Boolean({
        description: 'Whether this deployment can currently settle payments to this wallet.',
      }),
      unpayableReason: nullable(
        Type.String({ description: 'Why the wallet is not payable; null if it is.' }),
      ),
      current: Type.Boolean({ description: 'Whether new checkouts of this family are paid to this wallet.' }),
      confirmationRequired: Type.Boolean({
        description:
          'Whether a change of this wallet waits for an owner of the store, who confirms or refuses it in the console within 7 days: to be used or, if it is current, to be retired.',
      }),
      provenAt: nullable(
        Type.String({
          format: 'date-time',
          description:
            'When a signature of the wallet proved that it belongs to this store; null if none has.',
        }),
      ),
      sharedElsewhere,
      createdAt: timestamp(),
    },
    closed,
  ),
)

export const nextCursor = nullable(Type.String({ description: 'Null on the last page.' }))
export const CheckoutPage = of<Wire.Page<Wire.StoreCheckout>>()(
  Type.Object({ data: Type.Array(StoreCheckout), nextCursor }, closed),
)
export const WalletPage = of<Wire.Page<Wire.Wallet>>()(
  Type.Object({ data: Type.Array(Wallet), nextCursor }, closed),
)
export const Network = of<Wire.Network>()(
  Type.Object(
    {
      name: Type.String(),
      chainId: Type.String({
        description: 'Farthing’s own name for the chain.',
        examples: ['BASE_MAINNET'],
      }),
      network: Type.String({ description: 'CAIP-2 identifier.', examples: ['eip155:8453'] }),
      family: Type.Enum(['EVM', 'SOLANA']),
      mode: Type.Enum(['live', 'test']),
      assets: Type.Array(
        Type.Object({ symbol: Type.String(), address: Type.String(), decimals: Type.Integer() }, closed),
      ),
    },
    closed,
  ),
)
export const NetworkList = of<{ data: Wire.Network[] }>()(Type.Object({ data: Type.Array(Network) }, closed))

export const Currency = of<Wire.Currency>()(
  Type.Object(
    {
      code: Type.String(),
      name: Type.String(),
      source: Type.String({
        description:
          'Where the rate comes from. fixed: the operator set it, or it is USD, which is always 1 USDC.',
      }),
      asOf: nullable(timestamp()),
    },
    closed,
  ),
)
export const CurrencyList = of<{ data: Wire.Currency[] }>()(
  Type.Object({ data: Type.Array(Currency) }, closed),
)

export const ProblemDetails = of<Wire.ProblemDetails>()(
  Type.Object({
    type: Type.String({ description: 'The URL of the page about this code.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What went wrong in this request.' }),
    advice: Type.String({ description: 'What to do next.' }),
    code: Type.String({ description: 'Stable: programs should branch on it.' }),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(
        Type.Object({ pointer: Type.String(), code: Type.String(), detail: Type.String() }, closed),
        {
          description:
            'With invalid_request: each wrong value, at most 20. The pointer is a JSON pointer into the body, or the name of a parameter or header.',
        },
      ),
    ),
  }),
)

export const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 }))
export const cursor = Type.Optional(
  Type.String({ maxLength: 100, description: 'The nextCursor of the previous page.' }),
)

export const PageQuery = Type.Object({ limit, cursor }, closed)

export const CheckoutQuery = Type.Object(
  {
    limit,
    cursor,
    status: Type.Optional(Type.Enum([...statuses])),
    orderId: Type.Optional(Type.String({ maxLength: 255 })),
    createdFrom: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only checkouts created at this time or later.' }),
    ),
    createdBefore: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only checkouts created before this time.' }),
    ),
  },
  closed,
)
