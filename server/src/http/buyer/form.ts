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

/**
 * Another site has no reason to post these forms. Browsers say where a form came from; those that hide the page's URL
 * send the origin "null".
 */
export function refuseCrossSite(ctx: Context, { headers }: FastifyRequest): void {
  const site = headers['sec-fetch-site']
  const origin = headers.origin
  const isOurs =
    typeof site === 'string'
      ? site === 'same-origin' || site === 'none'
      : origin === undefined || origin === 'null' || origin === new URL(ctx.config.checkoutPageUrl).origin
  if (!isOurs) throw new Problem('cross_site', 'This form can be submitted only from its own page.')
}

/** The checkout that the URL names. */
export async function findView(ctx: Context, { params }: FastifyRequest): Promise<CheckoutView> {
  const view = await readView(ctx, (params as { checkoutId: string }).checkoutId)
  if (!view) throw new Problem('not_found', 'No such checkout.')
  return view
}
