import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import type { Context } from '../../context.ts'
import type { Rails } from '../../payments/rail.ts'
import { readQuotas } from '../../payments/settlers/readiness.ts'
import { type Store as StoreRow, storeToWire } from '../../stores/store.ts'
import { updateStore } from '../../stores/update.ts'
import { answer, type Route } from '../route.ts'
import { nullable, shape, timestamp, webUrl } from './shapes.ts'

export const FinalityRule = shape<Wire.FinalityRule>()({
  minAmount: Type.String({ pattern: '^(0|[1-9]\\d{0,14})(\\.\\d{1,6})?$', description: 'In USDC.' }),
  finality: Type.Enum(['included', 'safe', 'finalized']),
})

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
  legalName: nullable(
    Type.String({
      maxLength: 200,
      description: 'The seller’s legal name, for receipts. Up to 200 bytes.',
      examples: ['Juniper & Pine Ltd'],
    }),
  ),
  legalAddress: nullable(
    Type.String({
      maxLength: 605,
      description: 'The seller’s postal address, for receipts. Up to 6 lines of 100 bytes each.',
      examples: ['4 Mill Lane\nBristol BS1 4TR'],
    }),
  ),
  taxId: nullable(
    Type.String({
      maxLength: 50,
      description: 'The seller’s tax number, for receipts. Up to 50 bytes.',
      examples: ['GB123456789'],
    }),
  ),
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

const GasQuota = shape<Wire.GasQuota>()(
  {
    network: Type.String({ description: 'CAIP-2 identifier.' }),
    currency: Type.String({ description: 'The network’s native currency, in which the amounts are.' }),
    spent: Type.String(),
    perDay: Type.String(),
    resetsAt: timestamp(),
  },
  {
    description:
      'The cost of the store’s settlements today, failed ones included. Once spent reaches perDay, payments to the store get 503 settlement_unavailable until resetsAt.',
  },
)

export const Store = shape<Wire.Store>()({
  id: Type.String({ description: 'Begins with st_.' }),
  mode: Type.Enum(['live', 'test']),
  name: Type.String(),
  ...storeSettings,
  accentColor: nullable(Type.String()),
  walletChanges: Type.Enum(['key', 'member'], {
    description:
      'Who can change the wallet that new checkouts are paid to. key: a key alone. member: an owner also has to confirm the change in the console. Owners set it there; the default is member for live stores that have an owner.',
  }),
  managerRefundLimit: Type.String({
    description:
      'What each manager may refund within 24 hours, in whole tokens. With 0 only owners refund. Owners set it in the console.',
    examples: ['250'],
  }),
  standing: Type.Enum(['waiting', 'unproven', 'approved', 'suspended'], {
    description:
      'Only an approved store may create checkouts. waiting: the operator has to approve it first. unproven: it has to prove a wallet first. suspended: the operator has suspended it. Everything else works in each standing.',
  }),
  suspendedReason: nullable(
    Type.String({ description: 'The operator’s reason; null unless the store is suspended.' }),
  ),
  createdAt: timestamp(),
  gas: Type.Optional(
    Type.Array(GasQuota, { description: 'One per network with a limit; absent if there is none.' }),
  ),
})

export const UpdateStore = shape<Wire.UpdateStore>()(
  {
    name: Type.Optional(Type.String({ description: '1 to 100 bytes.' })),
    logoUrl: Type.Optional(storeSettings.logoUrl),
    accentColor: Type.Optional(nullable(Type.String({ pattern: '^#[0-9a-fA-F]{6}$' }))),
    supportEmail: Type.Optional(storeSettings.supportEmail),
    supportUrl: Type.Optional(storeSettings.supportUrl),
    legalName: Type.Optional(storeSettings.legalName),
    legalAddress: Type.Optional(storeSettings.legalAddress),
    taxId: Type.Optional(storeSettings.taxId),
    finalityPolicy: Type.Optional(storeSettings.finalityPolicy),
    timeZone: Type.Optional(storeSettings.timeZone),
    reportCurrency: Type.Optional(storeSettings.reportCurrency),
  },
  { minProperties: 1 },
)

/** The store's own settings. */
export function storeRoutes(rails: Rails): Route[] {
  const readStore = async (ctx: Context, store: StoreRow) => {
    const gas = await readQuotas(ctx, rails, store, ctx.now())
    return { ...storeToWire(store), ...(gas.length > 0 && { gas }) }
  }
  return [
    {
      method: 'GET',
      path: '/api/v1/store',
      operationId: 'getOwnStore',
      // A store that was just updated must not come from the cache.
      needsFreshCaller: true,
      summary: 'Read the store that the key belongs to',
      description: 'Use it to find the store’s id if all you have is a key.',
      scope: 'any',
      answers: { 200: { description: 'The store.', schema: Store } },
      problems: [],
      handle: answer(200, ({ ctx, caller }) => readStore(ctx, caller.holder.store)),
    },
    {
      method: 'GET',
      path: '/api/v1/stores/:storeId',
      operationId: 'getStore',
      // A store that was just updated must not come from the cache.
      needsFreshCaller: true,
      summary: 'Read the store',
      scope: 'any',
      answers: { 200: { description: 'The store.', schema: Store } },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, caller }) => readStore(ctx, caller.holder.store)),
    },
    {
      method: 'PATCH',
      path: '/api/v1/stores/:storeId',
      operationId: 'updateStore',
      summary: 'Change the store’s name, appearance or finality policy',
      description:
        'Fields that you leave out stay unchanged. Existing checkouts keep the policy they were created with.',
      scope: 'wallets:write',
      body: UpdateStore,
      answers: { 200: { description: 'The changed store.', schema: Store } },
      problems: ['not_found'],
      handle: answer<Wire.UpdateStore>(200, async ({ ctx, storeId, actor, input, now }) =>
        readStore(ctx, await updateStore(ctx, storeId, actor, input, now)),
      ),
    },
  ]
}
