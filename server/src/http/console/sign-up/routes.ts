import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { type Applicant, openStoreSignUp, signUpForStore, takesSignUps } from '../../../stores/sign-up.ts'
import { networksFor } from '../../../stores/store.ts'
import { addressBlock } from '../../limits.ts'
import { fill, html } from '../../page/html.ts'
import { describeBrowser } from '../browser.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, readText, textOf } from '../fields.ts'
import { languageOf, textsOf } from '../texts/choose.ts'
import { browserOf, startSession } from '../visitor.ts'

/** Where a stranger opens a store. Unless SIGN_UP lets them, there is nothing here. */
export function mountSignUp(scope: FastifyInstance, ctx: Context): void {
  if (!takesSignUps(ctx)) return
  const attempt = { config: { isOpen: true, isAttempt: true } }

  scope.get('/sign-up', { config: { isOpen: true } }, (request, reply) => {
    if (request.visitor.session) return reply.code(303).header('location', '/').send()
    const texts = textsOf(request).signUp
    const has = (mode: 'test' | 'live') => networksFor(ctx, mode).length > 0
    const waits = ctx.config.signUp === 'open' ? 'open' : 'approval'
    return sendPage(ctx, request, reply, {
      title: texts.title,
      isAlone: true,
      main: html`<h1>${texts.heading}</h1>
<p class="soft">${has('test') && texts.test} ${has('live') && texts.about[waits]}</p>
<form data-passkey="sign-up" class="fields">
<label>${texts.storeName}<input name="storeName" required maxlength="100" autocomplete="organization"></label>
<label>${texts.name}<input name="name" required maxlength="100" autocomplete="name"></label>
<label>${texts.wallet}<input name="walletAddress" required maxlength="100" autocomplete="off" autocapitalize="off" spellcheck="false" dir="ltr" aria-describedby="wallet-hint"></label>
<p class="soft" id="wallet-hint">${texts.walletHint}</p>
<p class="soft">${texts.noPassword}</p>
<div><button>${texts.button}</button></div>
</form>
<noscript><p class="note">${texts.needsScript}</p></noscript>
<p class="soft">${fill(texts.hasPasskey, { signIn: html`<a href="/sign-in">${texts.signIn}</a>` })}</p>`,
    })
  })

  scope.post('/sign-up/options', attempt, async (request) => {
    const { token } = browserOf(request)
    return await openStoreSignUp(ctx, token, addressBlock(request.ip), readApplicant(request), ctx.now())
  })

  scope.post('/sign-up', attempt, async (request, reply) => {
    const fields = fieldsOf(request)
    const browser = browserOf(request)
    const signing = {
      block: addressBlock(request.ip),
      memberId: textOf(fields, 'memberId'),
      applicant: readApplicant(request),
      answer: fields.answer,
      passkeyName: describeBrowser(browser.userAgent, languageOf(request)),
    }
    const token = await signUpForStore(ctx, browser, signing, ctx.now())
    startSession(ctx, reply, token)
    return { to: '/' }
  })
}

function readApplicant(request: FastifyRequest): Applicant {
  const texts = textsOf(request).signUp
  return {
    storeName: readText(request, 'storeName', texts.storeName),
    name: readText(request, 'name', texts.name),
    walletAddress: textOf(fieldsOf(request), 'walletAddress').trim(),
  }
}
