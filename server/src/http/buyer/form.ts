import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type CheckoutView, readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'

/** A network's name with an address or a transaction's hash. */
const formBytesMax = 1_024

/** A form that a buyer's browser or wallet posts, and nothing else, is read in this scope. */
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

/** The checkout that the address names. */
export async function findView(ctx: Context, { params }: FastifyRequest): Promise<CheckoutView> {
  const view = await readView(ctx, (params as { checkoutId: string }).checkoutId)
  if (!view) throw new Problem('not_found', 'No such checkout.')
  return view
}
