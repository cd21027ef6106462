import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import type { Context } from '../../context.ts'
import { networks } from '../../networks.ts'
import { listCurrencies } from '../../rates/list.ts'
import { type Route, sendJson } from '../route.ts'
import { closed, nullable, of, timestamp } from './shapes.ts'

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

const NetworkList = of<{ data: Wire.Network[] }>()(Type.Object({ data: Type.Array(Network) }, closed))

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

const CurrencyList = of<{ data: Wire.Currency[] }>()(Type.Object({ data: Type.Array(Currency) }, closed))

/** Endpoints without a key: the networks, tokens and currencies that this deployment accepts. */
export function publicRoutes(): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/networks',
      operationId: 'listNetworks',
      summary: 'List the networks and assets that can be paid with',
      scope: null,
      answers: {
        200: {
          description: 'The networks that this deployment settles payments on.',
          schema: NetworkList,
        },
      },
      problems: [],
      async handle(ctx, _request, reply) {
        return sendJson(reply, 200, { data: listNetworks(ctx) })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/currencies',
      operationId: 'listCurrencies',
      summary: 'List the currencies that checkouts can currently be priced in',
      scope: null,
      answers: {
        200: {
          description: 'The currencies with a fresh rate. USD is always included.',
          schema: CurrencyList,
        },
      },
      problems: [],
      async handle(ctx, _request, reply) {
        return sendJson(reply, 200, { data: await listCurrencies(ctx, ctx.now()) })
      },
    },
  ]
}

function listNetworks(ctx: Context): Wire.Network[] {
  return networks
    .filter(({ id }) => ctx.config.networks.includes(id))
    .map(({ name, id, caip2, family, mode, assets }) => ({
      name,
      chainId: id,
      network: caip2,
      family,
      mode,
      assets: assets.map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
    }))
}
