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

export const Actor = of<Wire.Actor>()(
  Type.Object(
    {
      type: Type.Enum(['key', 'member', 'operator', 'system']),
      id: Type.String({ description: 'The id of the key or member, or the operator’s name.' }),
      name: nullable(Type.String({ description: 'The key’s label, or the person’s name.' })),
    },
    { ...closed, description: 'Who caused it. Null for what payers, the chain or time caused.' },
  ),
)

export const webUrl = (description: string) => nullable(Type.String({ maxLength: 2048, description }))

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
  timeZone: Type.String({
    maxLength: 64,
    description: 'The IANA name of the time zone in which the store’s days begin and end.',
    examples: ['Europe/Madrid'],
  }),
  reportCurrency: Type.String({
    maxLength: 3,
    description: 'ISO 4217: the currency in which takings are summed up.',
    examples: ['EUR'],
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
      managerRefundLimit: Type.String({
        description:
          'What each manager may refund within 24 hours, in whole tokens. With 0 only owners refund. Owners set it in the console.',
        examples: ['250'],
      }),
      standing: Type.Enum(['waiting', 'unproven', 'approved', 'suspended'], {
        description:
          'Whether the store may create checkouts: only if approved. waiting: the operator has to approve it first. unproven: it has to prove a wallet first. Everything else works in each of them.',
      }),
      suspendedReason: nullable(
        Type.String({ description: 'What the operator says; null unless the store is suspended.' }),
      ),
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
      timeZone: Type.Optional(storeSettings.timeZone),
      reportCurrency: Type.Optional(storeSettings.reportCurrency),
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
          'Hex with 0x, up to 4,096 bytes; of a contract wallet, what it accepts by ERC-1271, also wrapped by ERC-6492. Of a Solana wallet, 64 bytes in base58.',
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
      proofRequired: Type.Boolean({
        description:
          'Whether the wallet is used only once its holder has proven it. That is so where several cells share a directory and this one has not used the wallet yet; proving it then puts it to use.',
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
