import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId } from '../../../ids.ts'
import { listRefunds } from '../../../refunds/read.ts'
import { html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { readerOf } from '../formats.ts'
import { renderApiLine } from '../frame/api-line.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, storeOf } from '../visitor.ts'
import { mountActs } from './act.ts'
import { renderList, statuses } from './list.ts'
import { mountMaking } from './make.ts'
import { sendOne } from './send.ts'
import { mountSigning } from './sign.ts'

const path = '/stores/:storeId/refunds'
const reading = { config: { right: 'refunds:read' } } as const
const rowsPerPage = 50

/** Money that goes back: the list, one refund with what to do next, and making one. */
export function mountRefunds(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, reading, async (request, reply) => {
    const { storeId } = storeOf(request)
    const query = request.query as Readonly<Record<string, unknown>>
    const status = statuses.find((each) => each === query.status) ?? null
    const cursor = typeof query.cursor === 'string' && isId('rf', query.cursor) ? query.cursor : null
    const asked = { status, cursor, limit: rowsPerPage }
    const { data: refunds, nextCursor } = await listRefunds(forStore(ctx, storeId), storeId, asked)
    const reader = readerOf(request)
    const main = renderList(request, { status, cursor, refunds, nextCursor, reader, now: ctx.now() })
    const parameters = new URLSearchParams({ ...(status && { status }), limit: `${rowsPerPage}` })
    return sendPage(ctx, request, reply, {
      screen: 'refunds',
      title: textsOf(request).refunds.title,
      isLive: true,
      main: html`${main}${renderApiLine(request, ctx.config.baseUrl, { path: `/refunds?${parameters}` })}`,
    })
  })

  scope.get(`${path}/:refundId`, reading, (request, reply) => sendOne(ctx, request, reply, null))

  mountActs(scope, ctx)
  mountMaking(scope, ctx)
  mountSigning(scope, ctx)
}
