import type { Network } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { networks } from '../networks.ts'
import { listCurrencies } from '../rates/list.ts'
import { type Route, sendJson } from './route.ts'
import * as schemas from './schemas.ts'

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
          schema: schemas.NetworkList,
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
          schema: schemas.CurrencyList,
        },
      },
      problems: [],
      async handle(ctx, _request, reply) {
        return sendJson(reply, 200, { data: await listCurrencies(ctx, ctx.now()) })
      },
    },
  ]
}

function listNetworks(ctx: Context): Network[] {
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
