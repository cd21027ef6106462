import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId } from '../../../ids.ts'
import { actAs } from '../../../members/act.ts'
import { Refusal } from '../../../members/refusal.ts'
import { openRails } from '../../../payments/rails.ts'
import { prepareRefund } from '../../../refunds/prepare.ts'
import { signRefund } from '../../../refunds/sign.ts'
import { fieldsOf, textOf } from '../fields.ts'
import { forStore, sessionOf, storeOf } from '../visitor.ts'
import { inWords } from './words.ts'

const path = '/stores/:storeId/refunds/:refundId'
const writing = { config: { right: 'refunds:write' } } as const

/**
 * For the script: hands out what the wallet signs, and takes its signature. Neither takes a touch, because nothing moves
 * without the key of the wallet, to nobody but the refund's recipient.
 */
export function mountSigning(scope: FastifyInstance, ctx: Context): void {
  const rails = openRails(ctx)

  scope.post(`${path}/prepare`, writing, (request) =>
    inWords(request, async () => {
      const { mine, storeId, id } = await enter(ctx, request)
      return await prepareRefund(mine, rails, storeId, id)
    }),
  )

  scope.post(`${path}/signature`, writing, (request) =>
    inWords(request, async () => {
      const { mine, storeId, id } = await enter(ctx, request)
      const fields = fieldsOf(request)
      const [signature, transaction] = [textOf(fields, 'signature'), textOf(fields, 'transaction')]
      await signRefund(mine, rails, storeId, id, transaction === '' ? { signature } : { transaction })
      return { to: `/stores/${storeId}/refunds/${id}` }
    }),
  )
}

/** Asks again whether the member may: a role that was taken away counts at once. */
async function enter(ctx: Context, request: FastifyRequest) {
  const { storeId } = storeOf(request)
  const { refundId: id } = request.params as { refundId: string }
  if (!isId('rf', id)) throw new Refusal('not_found')
  const mine = forStore(ctx, storeId)
  await actAs(mine, storeId, sessionOf(request), 'refunds:write', async () => {})
  return { mine, storeId, id }
}
