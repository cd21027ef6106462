import type * as Wire from '@farthing/sdk'
import Type, { type Static } from 'typebox'
import { isId } from '../../ids.ts'
import { challengeWallet, proveWallet } from '../../stores/prove.ts'
import { listWallets } from '../../stores/rows.ts'
import { walletToWire } from '../../stores/store.ts'
import { registerWallet, retireWallet, updateWallet } from '../../stores/wallets.ts'
import { answer, cutPage, invalidCursor, limitDefault, type Route } from '../route.ts'
import { nullable, of, PageQuery, pageOf, shape, timestamp } from './shapes.ts'

const sharedElsewhere = Type.Boolean({
  description:
    'Whether the wallet also receives payments that this deployment does not handle, as the store says. A wallet that receives no others is better.',
})

export const UpdateWallet = shape<Wire.UpdateWallet>()({ sharedElsewhere })

export const WalletChallenge = shape<Wire.WalletChallenge>()({
  walletId: Type.String(),
  message: Type.String({
    description:
      'The text to sign with the wallet, exactly as it is: with personal_sign (EIP-191) or, on Solana, signMessage.',
  }),
  expiresAt: timestamp(),
})

export const ProveWallet = shape<Wire.ProveWallet>()({
  signature: Type.String({
    maxLength: 16_384,
    description:
      'Hex with 0x, up to 4,096 bytes. For a contract wallet: what it accepts by ERC-1271, also wrapped by ERC-6492. For a Solana wallet: 64 bytes in base58.',
  }),
})

export const RegisterWallet = shape<Wire.RegisterWallet>()({
  walletAddress: Type.String({ maxLength: 100, description: 'In the format of its network family.' }),
  custodialType: Type.Enum(['CUSTODIAL', 'NON_CUSTODIAL']),
})

export const Wallet = shape<Wire.Wallet>()({
  id: Type.String({ description: 'Begins with wal_.' }),
  storeId: Type.String(),
  family: Type.Enum(['EVM', 'SOLANA']),
  walletAddress: Type.String(),
  custodialType: Type.Enum(['CUSTODIAL', 'NON_CUSTODIAL']),
  payable: Type.Boolean({
    description: 'Whether this deployment can currently settle payments to this wallet.',
  }),
  unpayableReason: nullable(Type.String({ description: 'Why the wallet is not payable; null if it is.' })),
  current: Type.Boolean({ description: 'Whether new checkouts of this family are paid to this wallet.' }),
  confirmationRequired: Type.Boolean({
    description:
      'Whether a change of this wallet waits for an owner of the store, who confirms or refuses it in the console within 7 days. The change is to use the wallet or, if it is current, to retire it.',
  }),
  proofRequired: Type.Boolean({
    description:
      'Whether the wallet is used only once its holder has proven it. That is so where several cells share a directory and this one has not used the wallet yet; proving it then puts it to use.',
  }),
  provenAt: nullable(
    Type.String({
      format: 'date-time',
      description: 'When a signature of the wallet proved that it belongs to this store; null if none has.',
    }),
  ),
  sharedElsewhere,
  createdAt: timestamp(),
})

const WalletPage = of<Wire.Page<Wire.Wallet>>()(pageOf(Wallet))

const oneWallet = '/api/v1/stores/:storeId/wallets/:walletId'

/** The wallets that the store is paid to. */
export function walletRoutes(): Route[] {
  return [...keepingRoutes(), ...provingRoutes()]
}

function keepingRoutes(): Route[] {
  return [
    registerRoute('SOLANA', 'solana', 'registerSolanaWallet', 'Register a Solana wallet'),
    registerRoute('EVM', 'evm', 'registerEvmWallet', 'Register an EVM wallet'),
    {
      method: 'GET',
      path: '/api/v1/stores/:storeId/wallets',
      operationId: 'listWallets',
      summary: 'List the store’s wallets, newest first',
      scope: 'wallets:read',
      query: PageQuery,
      answers: {
        200: { description: 'One page, without retired wallets.', schema: WalletPage },
      },
      problems: ['not_found'],
      handle: answer<Static<typeof PageQuery>>(200, async ({ ctx, caller, input }) => {
        const { limit = limitDefault, cursor = null } = input
        if (cursor !== null && !isId('wal', cursor)) throw invalidCursor()
        const { store } = caller.holder
        const found = await listWallets(ctx.db, store.id, { before: cursor, limit: limit + 1 })
        const { data, nextCursor } = cutPage(found, limit)
        return { data: data.map((wallet) => walletToWire(ctx, store.mode, wallet)), nextCursor }
      }),
    },
    {
      method: 'PATCH',
      path: oneWallet,
      operationId: 'updateWallet',
      summary: 'Say whether a wallet also receives other payments',
      scope: 'wallets:write',
      body: UpdateWallet,
      answers: { 200: { description: 'The changed wallet.', schema: Wallet } },
      problems: ['not_found'],
      handle: answer<Wire.UpdateWallet>(200, ({ ctx, storeId, actor, param, input, now }) =>
        updateWallet(ctx, storeId, actor, { ...input, walletId: param('walletId') }, now),
      ),
    },
    {
      method: 'POST',
      path: `${oneWallet}/retire`,
      operationId: 'retireWallet',
      summary: 'Retire a wallet',
      description:
        'New checkouts no longer use it. Existing checkouts are still paid to it. If it is current and the store’s walletChanges is member, an owner has to confirm it in the console first.',
      scope: 'wallets:write',
      answers: {
        200: {
          description: 'Retired, or still current and waiting for an owner to confirm it.',
          schema: Wallet,
        },
      },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, actor, param, now }) =>
        retireWallet(ctx, storeId, actor, param('walletId'), now),
      ),
    },
  ]
}

/** A signature of the wallet proves that it belongs to the store. */
function provingRoutes(): Route[] {
  return [
    {
      method: 'POST',
      path: `${oneWallet}/challenge`,
      operationId: 'challengeWallet',
      isUrgent: true,
      summary: 'Get a message with which a wallet proves that it belongs to the store',
      description: 'Valid for one hour and for one proof. A new one replaces the one before.',
      scope: 'wallets:write',
      answers: { 201: { description: 'What the wallet has to sign.', schema: WalletChallenge } },
      problems: ['not_found'],
      handle: answer(201, ({ ctx, caller, param, now }) =>
        challengeWallet(ctx, caller.holder.store, param('walletId'), now),
      ),
    },
    {
      method: 'POST',
      path: `${oneWallet}/prove`,
      operationId: 'proveWallet',
      isUrgent: true,
      summary: 'Prove that a wallet belongs to the store',
      description:
        'Presents the wallet’s signature of the challenge. Payments to a wallet that match no checkout belong to the stores that have proven it. If the wallet’s proofRequired is true, proving it also puts it to use, as registering does for other wallets.',
      scope: 'wallets:write',
      body: ProveWallet,
      answers: { 200: { description: 'The proven wallet.', schema: Wallet } },
      problems: ['not_found', 'wallet_elsewhere'],
      handle: answer<Wire.ProveWallet>(200, ({ ctx, caller, actor, param, input, now }) =>
        proveWallet(ctx, { store: caller.holder.store, actor, now }, param('walletId'), input),
      ),
    },
  ]
}

function registerRoute(
  family: Wire.WalletFamily,
  segment: string,
  operationId: string,
  summary: string,
): Route {
  return {
    method: 'POST',
    path: `/api/v1/stores/:storeId/wallets/${segment}`,
    operationId,
    summary,
    description:
      'New checkouts are paid to the wallet of the family that was registered last. Registering an existing wallet again makes it current. If the store’s walletChanges is member, an owner has to confirm it in the console first; until then confirmationRequired is true. Where several cells share a directory, a wallet that is new to this cell has to be proven first; until then proofRequired is true.',
    scope: 'wallets:write',
    body: RegisterWallet,
    answers: {
      201: {
        description:
          'The wallet, whether it is new or was already registered: current, or waiting for an owner to confirm it.',
        schema: Wallet,
      },
    },
    problems: ['not_found', 'wallet_conflict', 'wallet_elsewhere'],
    handle: answer<Wire.RegisterWallet>(201, ({ ctx, storeId, actor, input, now }) =>
      registerWallet(ctx, storeId, actor, { ...input, family }, now),
    ),
  }
}
