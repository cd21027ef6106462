import type { ProveWallet, RegisterWallet, UpdateStore, UpdateWallet, WalletFamily } from '@farthing/sdk'
import type { Static } from 'typebox'
import type { CreateCheckoutVerb } from '../checkouts/create.ts'
import type { Context } from '../context.ts'
import { isId } from '../ids.ts'
import type { Rails } from '../payments/rail.ts'
import { openRails } from '../payments/rails.ts'
import { readQuotas } from '../payments/settlers/quota.ts'
import { invalid } from '../problems.ts'
import { challengeWallet, proveWallet } from '../stores/prove.ts'
import { listWallets } from '../stores/rows.ts'
import { type Store, storeToWire, walletToWire } from '../stores/store.ts'
import { updateStore } from '../stores/update.ts'
import { registerWallet, retireWallet, updateWallet } from '../stores/wallets.ts'
import { checkoutRoutes } from './checkouts-api.ts'
import { keyRoutes } from './keys-api.ts'
import { paymentRoutes } from './payments-api.ts'
import { refundRoutes } from './refunds-api.ts'
import { actorOf, caller, limitDefault, param, type Route, sendJson, storeOf } from './route.ts'
import * as schemas from './schemas.ts'

const oneWallet = '/api/v1/stores/:storeId/wallets/:walletId'

/** The store's API. Every operation acts for the store whose key was sent, and sees nothing of any other. */
export function storeRoutes(ctx: Context, createCheckout: CreateCheckoutVerb): Route[] {
  const rails = openRails(ctx)
  return [
    ...checkoutRoutes(createCheckout),
    ...paymentRoutes(ctx),
    ...refundRoutes(ctx, rails),
    ...settingsRoutes(rails),
    ...keyRoutes(),
  ]
}

function settingsRoutes(rails: Rails): Route[] {
  const readStore = async (ctx: Context, store: Store) => {
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
      answers: { 200: { description: 'The store.', schema: schemas.Store } },
      problems: [],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readStore(ctx, caller(request).holder.store))
      },
    },
    {
      method: 'GET',
      path: '/api/v1/stores/:storeId',
      operationId: 'getStore',
      // A store that was just updated must not come from the cache.
      needsFreshCaller: true,
      summary: 'Read the store',
      scope: 'any',
      answers: { 200: { description: 'The store.', schema: schemas.Store } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readStore(ctx, caller(request).holder.store))
      },
    },
    {
      method: 'PATCH',
      path: '/api/v1/stores/:storeId',
      operationId: 'updateStore',
      summary: 'Change the store’s name, appearance or finality policy',
      description:
        'Fields that you leave out stay unchanged. Existing checkouts keep the policy they were created with.',
      scope: 'wallets:write',
      body: schemas.UpdateStore,
      answers: { 200: { description: 'The changed store.', schema: schemas.Store } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(
          reply,
          200,
          await readStore(
            ctx,
            await updateStore(
              ctx,
              storeOf(request),
              actorOf(request),
              request.body as UpdateStore,
              ctx.now(),
            ),
          ),
        )
      },
    },
    registerRoute('SOLANA', 'solana', 'registerSolanaWallet', 'Register a Solana wallet'),
    registerRoute('EVM', 'evm', 'registerEvmWallet', 'Register an EVM wallet'),
    {
      method: 'GET',
      path: '/api/v1/stores/:storeId/wallets',
      operationId: 'listWallets',
      summary: 'List the store’s wallets, newest first',
      scope: 'wallets:read',
      query: schemas.PageQuery,
      answers: {
        200: { description: 'One page, without retired wallets.', schema: schemas.WalletPage },
      },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const { limit = limitDefault, cursor } = request.query as Static<typeof schemas.PageQuery>
        if (cursor !== undefined && !isId('wal', cursor)) {
          throw invalid({
            pointer: 'cursor',
            code: 'cursor',
            detail: 'Must be a cursor from an earlier answer.',
          })
        }
        const { store } = caller(request).holder
        const wallets = await listWallets(ctx.db, store.id, { before: cursor ?? null, limit: limit + 1 })
        const page = wallets.slice(0, limit)
        const nextCursor = wallets.length > limit ? (page.at(-1)?.id ?? null) : null
        return sendJson(reply, 200, {
          data: page.map((wallet) => walletToWire(ctx, store.mode, wallet)),
          nextCursor,
        })
      },
    },
    {
      method: 'PATCH',
      path: oneWallet,
      operationId: 'updateWallet',
      summary: 'Say whether a wallet is also paid by other means',
      scope: 'wallets:write',
      body: schemas.UpdateWallet,
      answers: { 200: { description: 'The changed wallet.', schema: schemas.Wallet } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const body = request.body as UpdateWallet
        const walletId = param(request, 'walletId')
        return sendJson(
          reply,
          200,
          await updateWallet(ctx, storeOf(request), actorOf(request), walletId, body, ctx.now()),
        )
      },
    },
    {
      method: 'POST',
      path: `${oneWallet}/challenge`,
      operationId: 'challengeWallet',
      isUrgent: true,
      summary: 'Get a message with which a wallet proves that it belongs to the store',
      description: 'Valid for one hour and for one proof. A new one replaces the one before.',
      scope: 'wallets:write',
      answers: { 201: { description: 'What the wallet has to sign.', schema: schemas.WalletChallenge } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const { store } = caller(request).holder
        return sendJson(reply, 201, await challengeWallet(ctx, store, param(request, 'walletId'), ctx.now()))
      },
    },
    {
      method: 'POST',
      path: `${oneWallet}/prove`,
      operationId: 'proveWallet',
      isUrgent: true,
      summary: 'Prove that a wallet belongs to the store',
      description:
        'Presents the wallet’s signature of the challenge. Payments to a wallet that match no checkout belong to the stores that have proven it. If the wallet’s proofRequired is true, proving it also puts it to use, as registering it does elsewhere.',
      scope: 'wallets:write',
      body: schemas.ProveWallet,
      answers: { 200: { description: 'The proven wallet.', schema: schemas.Wallet } },
      problems: ['not_found', 'wallet_elsewhere'],
      async handle(ctx, request, reply) {
        const { store } = caller(request).holder
        const body = request.body as ProveWallet
        return sendJson(
          reply,
          200,
          await proveWallet(ctx, store, actorOf(request), param(request, 'walletId'), body, ctx.now()),
        )
      },
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
          schema: schemas.Wallet,
        },
      },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(
          reply,
          200,
          await retireWallet(ctx, storeOf(request), actorOf(request), param(request, 'walletId'), ctx.now()),
        )
      },
    },
  ]
}

function registerRoute(family: WalletFamily, segment: string, operationId: string, summary: string): Route {
  return {
    method: 'POST',
    path: `/api/v1/stores/:storeId/wallets/${segment}`,
    operationId,
    summary,
    description:
      'New checkouts are paid to the wallet of the family that was registered last. Registering an existing wallet again makes it current. If the store’s walletChanges is member, an owner has to confirm it in the console first; until then confirmationRequired is true. Where several cells share a directory, a wallet that is new to this cell has to be proven first; until then proofRequired is true.',
    scope: 'wallets:write',
    body: schemas.RegisterWallet,
    answers: {
      201: {
        description:
          'The wallet, whether it is new or was already registered: current, or waiting for an owner to confirm it.',
        schema: schemas.Wallet,
      },
    },
    problems: ['not_found', 'wallet_conflict', 'wallet_elsewhere'],
    async handle(ctx, request, reply) {
      const wallet = await registerWallet(
        ctx,
        storeOf(request),
        actorOf(request),
        family,
        request.body as RegisterWallet,
        ctx.now(),
      )
      return sendJson(reply, 201, wallet)
    },
  }
}
