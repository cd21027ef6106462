import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { enrol, joinStore, openEnrolment } from '../../../members/enrol.ts'
import { type Identities, removeIdentity } from '../../../members/identities.ts'
import { openRecovery, recover, refuseByCode } from '../../../members/recovery-codes.ts'
import { endSession } from '../../../members/session.ts'
import { openSignIn, signIn } from '../../../members/sign-in.ts'
import { Problem } from '../../../problems.ts'
import {
  type Applicant,
  openStoreSignUp,
  signUpFamilies,
  signUpForStore,
  takesSignUps,
} from '../../../stores/sign-up.ts'
import { networksFor } from '../../../stores/store.ts'
import { addressBlock, addressBucket, openLimiter } from '../../limits.ts'
import { fieldsOf, readName, textOf } from '../fields.ts'
import { describeBrowser } from '../formats.ts'
import { keepReturn, readReturn, takeReturn } from '../returning.ts'
import { openPage } from '../screen.ts'
import { textsOf } from '../texts/choose.ts'
import { browserOf, clearSession, sessionOf, startSession } from '../visitor.ts'
import { renderEnrol, renderRecover, renderRefused, renderSignIn, renderSignUp } from './view.ts'

const open = { config: { isOpen: true } }
const attempt = { config: { isOpen: true, isAttempt: true } }

/** The ways into the console: a passkey, an invitation, opening a store, the company's identity provider. */
export function mountSignIn(scope: FastifyInstance, ctx: Context, identities: Identities | null): void {
  scope.get('/sign-in', open, (request, reply) => {
    const page = openPage(ctx, request, reply)
    const host = identities?.provider.host ?? null
    const { to } = request.query as { readonly to?: unknown }
    return page.send({
      title: page.texts.signIn.title,
      isAlone: true,
      main: renderSignIn(page, { host, takesSignUps: takesSignUps(ctx), to: readReturn(ctx, to) }),
    })
  })

  scope.post('/sign-in/options', attempt, async (request) => {
    return { options: await openSignIn(ctx, browserOf(request).token) }
  })

  scope.post('/sign-in', attempt, async (request, reply) => {
    const { answer, to } = fieldsOf(request)
    startSession(ctx, reply, await signIn(ctx, browserOf(request), answer, ctx.now()))
    return { to: readReturn(ctx, to) }
  })

  scope.post('/sign-out', async (request, reply) => {
    const session = sessionOf(request)
    await endSession(ctx, session, session.id)
    clearSession(ctx, reply)
    return reply.code(303).header('location', '/sign-in').send()
  })

  mountEnrol(scope, ctx)
  mountRecover(scope, ctx)
  if (takesSignUps(ctx)) mountSignUp(scope, ctx)
  if (identities) mountProvider(scope, ctx, identities)
}

/** Where an invitation's link leads. Its token follows the #, so only the script sees it. */
function mountEnrol(scope: FastifyInstance, ctx: Context): void {
  scope.get('/enrol', open, (request, reply) => {
    const page = openPage(ctx, request, reply)
    const memberName = request.visitor.session?.member.name ?? null
    return page.send({ title: page.texts.enrol.title, isAlone: true, main: renderEnrol(page, memberName) })
  })

  scope.post('/enrol/options', attempt, async (request) => {
    const { token } = browserOf(request)
    const { invitation, options } = await openEnrolment(ctx, token, fieldsOf(request).invitation)
    const { name, role, storeName: store, isRecovery } = invitation
    return { name, role: textsOf(request).team.roles[role], store, isRecovery, options }
  })

  scope.post('/enrol/join', { config: { isAttempt: true } }, async (request, reply) => {
    const { touch } = openPage(ctx, request, reply)
    await joinStore(ctx, await touch(), fieldsOf(request).invitation, ctx.now())
    return { to: '/' }
  })

  scope.post('/enrol', attempt, async (request, reply) => {
    const { invitation, answer } = fieldsOf(request)
    const browser = browserOf(request)
    const passkeyName = describeBrowser(browser.userAgent, textsOf(request))
    startSession(ctx, reply, await enrol(ctx, browser, { invitation, answer, passkeyName }, ctx.now()))
    return { to: '/' }
  })
}

/** Requests with a recovery code, per address and minute: a person types a code, and mistypes it a few times. */
const codesPerMinute = 10
/** Where a printed code makes a new passkey. */
function mountRecover(scope: FastifyInstance, ctx: Context): void {
  const ofAddress = openLimiter('recovery code', codesPerMinute, ctx.now, 60)
  const preHandler = async ({ ip }: FastifyRequest) => {
    if (!ofAddress.tryTake(addressBucket(ip)))
      throw new Problem('rate_limited', 'Too many recovery codes were tried. Wait a minute.', {
        retryAfterSeconds: 60,
      })
  }

  scope.get('/recover', open, (request, reply) => {
    const page = openPage(ctx, request, reply)
    return page.send({ title: page.texts.recover.title, isAlone: true, main: renderRecover(page) })
  })

  scope.post('/recover/options', { ...attempt, preHandler }, async (request) => {
    return await openRecovery(ctx, browserOf(request).token, fieldsOf(request).code)
  })

  scope.post('/recover', { ...attempt, preHandler }, async (request, reply) => {
    const { code, answer } = fieldsOf(request)
    const browser = browserOf(request)
    const passkeyName = describeBrowser(browser.userAgent, textsOf(request))
    startSession(ctx, reply, await recover(ctx, browser, { code, answer, passkeyName }, ctx.now()))
    return { to: '/' }
  })

  scope.post('/recover/refuse', { ...attempt, preHandler }, async (request, reply) => {
    const page = openPage(ctx, request, reply)
    await refuseByCode(ctx, page.field('code'), ctx.now())
    return page.send({ title: page.texts.recover.refused, isAlone: true, main: renderRefused(page) })
  })
}

/** Where a stranger opens a store, in a deployment whose SIGN_UP lets them. */
function mountSignUp(scope: FastifyInstance, ctx: Context): void {
  scope.get('/sign-up', open, (request, reply) => {
    const page = openPage(ctx, request, reply)
    if (request.visitor.session) return page.go('/')
    const has = (mode: 'test' | 'live') => networksFor(ctx, mode).length > 0
    const live = has('live') ? (ctx.config.signUp === 'open' ? 'open' : 'approval') : null
    return page.send({
      title: page.texts.signUp.title,
      isAlone: true,
      main: renderSignUp(page, { hasTest: has('test'), live, families: signUpFamilies(ctx) }),
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
      passkeyName: describeBrowser(browser.userAgent, textsOf(request)),
    }
    const { token, storeId } = await signUpForStore(ctx, browser, signing, ctx.now())
    startSession(ctx, reply, token)
    return { to: `/stores/${storeId}/start` }
  })
}

function readApplicant(request: FastifyRequest): Applicant {
  const texts = textsOf(request)
  const form = { texts, field: (name: string) => textOf(fieldsOf(request), name) }
  return {
    storeName: readName(form, 'storeName', texts.signUp.storeName),
    name: readName(form, 'name', texts.signUp.name),
    walletAddress: form.field('walletAddress').trim(),
  }
}

/** Signing in through the company's identity provider, and connecting an account there. */
function mountProvider(scope: FastifyInstance, ctx: Context, identities: Identities): void {
  // A link, not a form: our policy lets no form lead to another site. It only starts something for this browser.
  scope.get('/oidc', attempt, async (request, reply) => {
    const to = await identities.startSignIn(browserOf(request).token)
    keepReturn(ctx, reply, (request.query as { readonly to?: unknown }).to)
    return reply.code(303).header('location', to).send()
  })

  scope.post('/oidc/connect', async (request, reply) => {
    const { touch } = openPage(ctx, request, reply)
    return { to: await identities.startConnect(await touch(), browserOf(request).token, ctx.now()) }
  })

  scope.post('/oidc/disconnect', async (request, reply) => {
    const { touch, go } = openPage(ctx, request, reply)
    await removeIdentity(ctx, await touch(), ctx.now())
    return go('/account')
  })

  // The provider sends the browser back here. The state belongs to this browser and works once.
  scope.get(identities.provider.redirectPath, attempt, async (request, reply) => {
    const [, query = ''] = request.url.split('?')
    const { session } = request.visitor
    const token = await identities.finish(browserOf(request), session, query, ctx.now())
    if (token !== null) startSession(ctx, reply, token)
    const left = takeReturn(ctx, request, reply)
    const to = token === null ? '/account' : left
    return reply.code(303).header('location', to).send()
  })
}
