import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { buildTestWallet } from '@farthing/page/test-wallet'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { pagePathOf } from '../http/pay.ts'
import { networks } from '../networks.ts'
import { chainIdOf, testPayer } from './chain.ts'

const path = '/dev/test-wallet.js'

/**
 * Puts the test wallet on every payment page, by an element added on the way out: the page itself knows nothing of it,
 * so there is nothing that a deployment could leave switched on.
 */
export function offerTestWallet(app: FastifyInstance, ctx: Context): void {
  const [network, ...others] = networks.filter(({ id }) => ctx.config.networks.includes(id))
  assert(network?.id === 'LOCAL' && others.length === 0, 'the test wallet is for the local chain alone')
  assert(network.family === 'EVM')
  const script = buildTestWallet(testPayer.key, chainIdOf(network))
  const integrity = `sha384-${createHash('sha384').update(script).digest('base64')}`
  const element = `<script type="module" src="${path}" integrity="${integrity}"></script>`
  app.get(path, (_request, reply) => reply.type('text/javascript; charset=utf-8').send(script))
  // Only text can be added to.
  app.addHook('onRequest', async (request) => void delete request.headers['accept-encoding'])
  app.addHook('onSend', async (request, reply, payload) => {
    const isPage = String(reply.getHeader('content-type')).startsWith('text/html')
    if (!isPage || !request.url.startsWith(`${pagePathOf(ctx)}/`) || typeof payload !== 'string')
      return payload
    return payload.replace('</head>', () => `${element}\n</head>`)
  })
}
