import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { readTouch } from '../../members/confirm.ts'
import { type Identities, removeIdentity } from '../../members/identities.ts'
import { fieldsOf, touchOf } from './fields.ts'
import { browserOf, sessionOf, startSession } from './visitor.ts'

/** Signing in through the company's identity provider, and connecting an account there. */
export function mountOidc(scope: FastifyInstance, ctx: Context, identities: Identities): void {
  const attempt = { config: { isOpen: true, isAttempt: true } }

  // A link, not a form: our policy lets no form lead to another site. It only starts something for this browser.
  scope.get('/oidc', attempt, async (request, reply) => {
    const to = await identities.startSignIn(browserOf(request).token)
    return reply.code(303).header('location', to).send()
  })

  scope.post('/oidc/connect', async (request) => {
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fieldsOf(request)))
    return { to: await identities.startConnect(touch, browserOf(request).token, ctx.now()) }
  })

  scope.post('/oidc/disconnect', async (request, reply) => {
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fieldsOf(request)))
    await removeIdentity(ctx, touch, ctx.now())
    return reply.code(303).header('location', '/account').send()
  })

  // The provider sends the browser back here. The state belongs to this browser and works once.
  scope.get(identities.provider.redirectPath, attempt, async (request, reply) => {
    const [, query = ''] = request.url.split('?')
    const { session } = request.visitor
    const token = await identities.finish(browserOf(request), session, query, ctx.now())
    if (token !== null) startSession(ctx, reply, token)
    return reply
      .code(303)
      .header('location', token === null ? '/account' : '/')
      .send()
  })
}
