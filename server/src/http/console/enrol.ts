import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { readTouch } from '../../members/confirm.ts'
import { enrol, joinStore, openEnrolment } from '../../members/enrol.ts'
import { fill, type Html, html } from '../page/html.ts'
import { describeBrowser } from './browser.ts'
import { sendPage } from './document.ts'
import { fieldsOf, touchOf } from './fields.ts'
import { languageOf } from './texts/choose.ts'
import { browserOf, sessionOf, startSession } from './visitor.ts'

/** Where an invitation's link leads. Its token follows the #, so only the script sees it. */
export function mountEnrol(scope: FastifyInstance, ctx: Context): void {
  const attempt = { config: { isOpen: true, isAttempt: true } }

  scope.get('/enrol', { config: { isOpen: true } }, (request, reply) => {
    const { enrol: texts } = languageOf(request).texts
    const [store, name, role] = [
      invited('store', 'span'),
      invited('name', 'strong'),
      invited('role', 'strong'),
    ]
    return sendPage(ctx, request, reply, {
      title: texts.title,
      isAlone: true,
      main: html`<div data-shown-for="opening">
<h1>${texts.title}</h1>
<p class="soft">${fill(texts.hasPasskey, { signIn: html`<a href="/sign-in">${texts.signIn}</a>` })}</p>
</div>
<div data-shown-for="joining" hidden>
<h1>${fill(texts.join, { store })}</h1>
<p>${fill(texts.invited, { name, role })}</p>
<p class="soft">${texts.noPassword}</p>
</div>
<div data-shown-for="recovery" hidden>
<h1>${fill(texts.recover, { store })}</h1>
<p>${fill(texts.recoverAbout, { name })}</p>
</div>
<form data-passkey="enrol" hidden><button>${texts.button}</button></form>
${
  request.visitor.session &&
  html`<form data-passkey="join" data-shown-for="joining" hidden><button class="quiet">${fill(texts.joinAs, { name: request.visitor.session.member.name })}</button></form>`
}
<noscript><p class="note">${texts.needsScript}</p></noscript>`,
    })
  })

  scope.post('/enrol/options', attempt, async (request) => {
    const { token } = browserOf(request)
    const { invitation, options } = await openEnrolment(ctx, token, fieldsOf(request).invitation)
    const { name, role, storeName: store, isRecovery } = invitation
    return { name, role: languageOf(request).texts.team.roles[role], store, isRecovery, options }
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
    const passkeyName = describeBrowser(browser.userAgent, languageOf(request))
    startSession(ctx, reply, await enrol(ctx, browser, { invitation, answer, passkeyName }, ctx.now()))
    return { to: '/' }
  })
}

/** Where the script writes what the invitation says. */
function invited(part: 'store' | 'name' | 'role', element: 'span' | 'strong'): Html {
  return { html: `<${element} data-invited="${part}"></${element}>` }
}
