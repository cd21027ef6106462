import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { buildTestWallet } from '@farthing/page/test-wallet'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { pagePathOf } from '../http/api/pay.ts'
import { networks } from '../networks.ts'
import { chainIdOf, testPayer } from './chain.ts'

const path = '/dev/test-wallet.js'

/**
 * Adds the test wallet to every payment page, as an element inserted into the response. The page itself does not know
 * about it, so a deployment has nothing to leave switched on.
 */
export function offerTestWallet(app: FastifyInstance, ctx: Context): void {
  const [network, ...others] = networks.filter(({ id }) => ctx.config.networks.includes(id))
  assert(network?.id === 'LOCAL' && others.length === 0, 'the test wallet is for the local chain only')
  assert(network.family === 'EVM')
  const script = buildTestWallet(testPayer.key, chainIdOf(network))
  const integrity = `sha384-${createHash('sha384').update(script).digest('base64')}`
  const element = `<script type="module" src="${path}" integrity="${integrity}"></script>`
  app.get(path, (_request, reply) => reply.type('text/javascript; charset=utf-8').send(script))
  // The element can only be added to uncompressed text.
  app.addHook('onRequest', async (request) => void delete request.headers['accept-encoding'])
  app.addHook('onSend', async (request, reply, payload) => {
    const isPage = String(reply.getHeader('content-type')).startsWith('text/html')
    if (!isPage || !request.url.startsWith(`${pagePathOf(ctx)}/`) || typeof payload !== 'string')
      return payload
    return payload.replace('</head>', () => `${element}\n</head>`)
  })
}
