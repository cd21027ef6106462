import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { endSession } from '../../members/session.ts'
import { openSignIn, signIn } from '../../members/sign-in.ts'
import { html } from '../page/html.ts'
import { sendPage } from './document.ts'
import { fieldsOf } from './fields.ts'
import { browserOf, clearSession, sessionOf, startSession } from './visitor.ts'

export function mountSignIn(scope: FastifyInstance, ctx: Context): void {
  const open = { config: { isOpen: true } }
  const attempt = { config: { isOpen: true, isAttempt: true } }

  scope.get('/sign-in', open, (request, reply) =>
    sendPage(ctx, request, reply, {
      title: 'Sign in',
      isAlone: true,
      main: html`<h1>Sign in to Farthing</h1>
<p class="soft">Use the passkey that you made when you were invited: your fingerprint, face, PIN or security key.</p>
<form data-passkey="sign-in"><button>Sign in with a passkey</button></form>
<noscript><p class="notice">Passkeys need JavaScript. Allow it for this site.</p></noscript>
<p class="soft">No passkey, or lost it? Ask an owner of your store for a new link.</p>`,
    }),
  )

  scope.post('/sign-in/options', attempt, async (request) => {
    return { options: await openSignIn(ctx, browserOf(request).token) }
  })

  scope.post('/sign-in', attempt, async (request, reply) => {
    const { answer } = fieldsOf(request)
    startSession(ctx, reply, await signIn(ctx, browserOf(request), answer, ctx.now()))
    return { to: '/' }
  })

  scope.post('/sign-out', async (request, reply) => {
    const session = sessionOf(request)
    await endSession(ctx, session, session.id)
    clearSession(ctx, reply)
    return reply.code(303).header('location', '/sign-in').send()
  })
}
