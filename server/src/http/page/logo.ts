import type { FastifyInstance } from 'fastify'
import { readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'
import { imageForm } from '../../stores/check-text.ts'
import { readLogo } from '../../stores/rows.ts'

/** How long a browser may show an old logo. */
const keptSeconds = 300

/** Serves the store's logo, because the page loads nothing from other hosts. An SVG opened on its own can do nothing. */
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
