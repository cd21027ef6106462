import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { readTouch } from '../../members/confirm.ts'
import { enrol, joinStore, openEnrolment } from '../../members/enrol.ts'
import { html } from '../page/html.ts'
import { describeBrowser } from './browser.ts'
import { sendPage } from './document.ts'
import { fieldsOf, touchOf } from './fields.ts'
import { browserOf, sessionOf, startSession } from './visitor.ts'

/** Where an invitation's link leads. Its token follows the #, so only the script sees it. */
export function mountEnrol(scope: FastifyInstance, ctx: Context): void {
  const attempt = { config: { isOpen: true, isAttempt: true } }

  scope.get('/enrol', { config: { isOpen: true } }, (request, reply) =>
    sendPage(ctx, request, reply, {
      title: 'Your invitation',
      isAlone: true,
      main: html`<div data-shown-for="opening">
<h1>Your invitation</h1>
<p class="soft">If you have a passkey already, <a href="/sign-in">sign in</a>.</p>
</div>
<div data-shown-for="joining" hidden>
<h1>Join <span data-invited="store"></span></h1>
<p>You are invited as <strong data-invited="name"></strong>, with the role <strong data-invited="role"></strong>.</p>
<p class="soft">You need no password. This device makes a passkey, which you unlock with your fingerprint, face or PIN each time you sign in.</p>
</div>
<div data-shown-for="recovery" hidden>
<h1>A new passkey for <span data-invited="store"></span></h1>
<p>This link is for <strong data-invited="name"></strong>. It makes a passkey on this device. All your earlier passkeys stop working, and you are signed out everywhere else.</p>
</div>
<form data-passkey="enrol" hidden><button>Create a passkey</button></form>
${
  request.visitor.session &&
  html`<form data-passkey="join" data-shown-for="joining" hidden><button class="quiet">Join as ${request.visitor.session.member.name}, with the passkey you have</button></form>`
}
<noscript><p class="notice">Passkeys need JavaScript. Allow it for this site, then open the link again.</p></noscript>`,
    }),
  )

  scope.post('/enrol/options', attempt, async (request) => {
    const { token } = browserOf(request)
    const { invitation, options } = await openEnrolment(ctx, token, fieldsOf(request).invitation)
    const { name, role, storeName: store, isRecovery } = invitation
    return { name, role, store, isRecovery, options }
  })

  scope.post('/enrol/join', { config: { isAttempt: true } }, async (request) => {
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await joinStore(ctx, touch, fields.invitation, ctx.now())
    return { to: '/' }
  })

  scope.post('/enrol', attempt, async (request, reply) => {
    const { invitation, answer } = fieldsOf(request)
    const browser = browserOf(request)
    const name = describeBrowser(browser.userAgent)
    startSession(ctx, reply, await enrol(ctx, browser, invitation, answer, name, ctx.now()))
    return { to: '/' }
  })
}
