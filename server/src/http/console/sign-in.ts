import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import type { Provider } from '../../members/identities.ts'
import { endSession } from '../../members/session.ts'
import { openSignIn, signIn } from '../../members/sign-in.ts'
import { takesSignUps } from '../../stores/sign-up.ts'
import { fill, html } from '../page/html.ts'
import { sendPage } from './document.ts'
import { fieldsOf } from './fields.ts'
import { languageOf } from './texts/choose.ts'
import { browserOf, clearSession, sessionOf, startSession } from './visitor.ts'

export function mountSignIn(scope: FastifyInstance, ctx: Context, provider: Provider | null): void {
  const open = { config: { isOpen: true } }
  const attempt = { config: { isOpen: true, isAttempt: true } }

  scope.get('/sign-in', open, (request, reply) => {
    const { signIn: texts } = languageOf(request).texts
    return sendPage(ctx, request, reply, {
      title: texts.title,
      isAlone: true,
      main: html`<h1>${texts.heading}</h1>
<p class="soft">${texts.about}</p>
<form data-passkey="sign-in"><button>${texts.button}</button></form>
${provider && html`<p><a class="button quiet" href="/oidc">${fill(texts.through, { host: provider.host })}</a></p>`}
<noscript><p class="note">${texts.needsScript}</p></noscript>
<p class="soft">${texts.lost}</p>
${takesSignUps(ctx) && html`<p><a href="/sign-up">${texts.signUp}</a></p>`}`,
    })
  })

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
