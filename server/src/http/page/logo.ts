import type { FastifyInstance } from 'fastify'
import { readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'
import { imageForm } from '../../stores/check-text.ts'
import { readLogo } from '../../stores/rows.ts'

/** A store that changes its logo does not want to wait longer. */
const keptSeconds = 300

/** The store's logo, from here: the page asks nobody else for anything. Opened by itself, an SVG can do nothing. */
export function mountLogo(scope: FastifyInstance, ctx: Context, path: string): void {
  scope.get(`${path}/:checkoutId/logo`, async (request, reply) => {
    const { checkoutId } = request.params as { checkoutId: string }
    const view = await readView(ctx, checkoutId)
    const logo = view?.store.hasLogo ? await readLogo(ctx.db, view.checkout.storeId) : null
    const [, type, base64] = imageForm.exec(logo ?? '') ?? []
    if (!type || !base64) throw new Problem('not_found', 'This store has no logo.')
    return reply
      .headers({
        'content-type': type,
        'cache-control': `public, max-age=${keptSeconds}`,
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
      })
      .send(Buffer.from(base64, 'base64'))
  })
}
