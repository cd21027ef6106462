import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type CheckoutView, readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'

/** Enough for a network's name and an address or a transaction hash. */
const formBytesMax = 1_024

/** Makes a scope read only form bodies, as a buyer's browser or wallet posts them. */
export function takeForms(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: formBytesMax },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  )
}

export function fieldOf({ body }: FastifyRequest, name: string): string | null {
  return body instanceof URLSearchParams ? body.get(name) : null
}

/** The checkout that the URL names. */
export async function findView(ctx: Context, { params }: FastifyRequest): Promise<CheckoutView> {
  const view = await readView(ctx, (params as { checkoutId: string }).checkoutId)
  if (!view) throw new Problem('not_found', 'No such checkout.')
  return view
}
