import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import type { Context } from '../../context.ts'
import { networks } from '../../networks.ts'
import { listCurrencies } from '../../rates/list.ts'
import { answer, type Route } from '../route.ts'
import { nullable, object, shape, timestamp } from './shapes.ts'

export const Network = shape<Wire.Network>()({
  name: Type.String(),
  chainId: Type.String({
    description: 'Farthing’s own name for the chain.',
    examples: ['BASE_MAINNET'],
  }),
  network: Type.String({ description: 'CAIP-2 identifier.', examples: ['eip155:8453'] }),
  family: Type.Enum(['EVM', 'SOLANA', 'SIMULATED']),
  mode: Type.Enum(['live', 'test']),
  assets: Type.Array(object({ symbol: Type.String(), address: Type.String(), decimals: Type.Integer() })),
})

const NetworkList = shape<{ data: Wire.Network[] }>()({ data: Type.Array(Network) })

export const Currency = shape<Wire.Currency>()({
  code: Type.String(),
  name: Type.String(),
  source: Type.String({
    description:
      'Where the rate comes from. fixed: the operator set it, or it is USD, which is always 1 USDC.',
  }),
  asOf: nullable(timestamp()),
})

const CurrencyList = shape<{ data: Wire.Currency[] }>()({ data: Type.Array(Currency) })

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
      handle: answer(200, async ({ ctx }) => ({ data: listNetworks(ctx) })),
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
      handle: answer(200, async ({ ctx, now }) => ({ data: await listCurrencies(ctx, now) })),
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
