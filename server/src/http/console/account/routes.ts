import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { sendsMail } from '../../../mails/write.ts'
import { actions, openConfirmation } from '../../../members/confirm.ts'
import { askForEmail, confirmEmail, readEmailLink, readEmailState } from '../../../members/email.ts'
import type { Provider } from '../../../members/identities.ts'
import { hasIdentity } from '../../../members/identities.ts'
import { alertKinds, paymentMails } from '../../../members/member.ts'
import { addPasskey, openPasskey, removePasskey } from '../../../members/passkeys.ts'
import { makeCodes, readCodesLeft, refuseRecovery } from '../../../members/recovery-codes.ts'
import { Refusal } from '../../../members/refusal.ts'
import { mayAct } from '../../../members/rights.ts'
import { listPasskeys } from '../../../members/rows.ts'
import { endSession, listSessions } from '../../../members/session.ts'
import { chooseMails, listChosenMails, stopPaymentMails } from '../../../members/silence.ts'
import { fieldsOf, readEmail, readName } from '../fields.ts'
import { openPage, pageRoutes } from '../screen.ts'
import { clearSession, sessionOf } from '../visitor.ts'
import { renderAccount, renderCodes, renderEmailLink, renderStop } from './view.ts'

/** More than any action has: a webhook endpoint's form has a box for every type of event. */
const valuesMax = 64
/** As long as a URL may be. */
const valueLengthMax = 2_048

/** The member's own page: stores, passkeys, sessions. And the challenges for everything that takes a touch. */
export function mountAccount(scope: FastifyInstance, ctx: Context, provider: Provider | null): void {
  const { get, post } = pageRoutes(scope, ctx)
  get('/account', async (page) => {
    const { request } = page
    const { id: sessionId, member } = sessionOf(request)
    const [chosen, passkeys, codes, sessions, isConnected, emailState] = await Promise.all([
      listChosenMails(ctx.db, member.id),
      listPasskeys(ctx.db, member.id),
      readCodesLeft(ctx.db, member.id),
      listSessions(ctx, member.id),
      hasIdentity(ctx.db, member.id),
      readEmailState(ctx.db, member.id),
    ])
    const { stores } = request.visitor
    const mailed = sendsMail(ctx) && member.email !== null ? chosen : null
    const email = sendsMail(ctx) ? { current: member.email, ...emailState } : null
    const host = provider?.host ?? null
    return page.send({
      title: page.texts.account.title,
      main: renderAccount(page, {
        ...{ stores, passkeys, codes, sessions, sessionId, email, mailed, host, isConnected },
        isOperator: member.isOperator,
      }),
    })
  })

  scope.post('/confirm', async (request) => {
    const { action: asked, values } = fieldsOf(request)
    const action = actions.find((each) => each === asked)
    if (!action) throw new Refusal('not_found')
    return { options: await openConfirmation(ctx, sessionOf(request), action, readValues(values)) }
  })

  scope.post('/passkeys/options', async (request) => {
    return { options: await openPasskey(ctx, sessionOf(request)) }
  })

  post('/passkeys', async (page) => {
    const name = readName(page, 'name')
    await addPasskey(ctx, await page.touch(), fieldsOf(page.request).answer, name, ctx.now())
    return { to: '/account' }
  })

  post('/passkeys/remove', async ({ touch, field, go }) => {
    await removePasskey(ctx, await touch(), field('passkeyId'), ctx.now())
    return go('/account')
  })

  // The codes are in this answer and in no URL.
  post('/codes', async (page) => {
    const codes = await makeCodes(ctx, await page.touch(), ctx.now())
    return await page.send({
      title: page.texts.codes.title,
      isAlone: true,
      main: renderCodes(page, sessionOf(page.request).member.name, codes),
    })
  })

  post('/codes/refuse', async ({ request, go }) => {
    await refuseRecovery(ctx, sessionOf(request), ctx.now())
    return go('/account')
  })

  post('/account/alerts', async ({ request, touch, field, go }) => {
    const store = request.visitor.stores.find(({ storeId }) => storeId === field('storeId'))
    if (!store || !mayAct(store.role, 'payments:read')) throw new Refusal('not_found')
    const payments = paymentMails.find((each) => each === field('payments'))
    if (!payments) throw new Refusal('invalid')
    const alerts = alertKinds.filter((kind) => store.role === 'owner' && field(kind) === 'yes')
    await chooseMails(ctx, store.storeId, await touch(), { alerts, payments }, ctx.now())
    return go('/account')
  })

  mountEmail(scope, ctx)

  post('/sessions/end', async ({ request, reply, field, go }) => {
    const session = sessionOf(request)
    await endSession(ctx, session, field('sessionId'))
    if (field('sessionId') === session.id) clearSession(ctx, reply)
    return go('/account')
  })
}

/** The address of the member's mails, and where the link leads that is sent to a new one. */
function mountEmail(scope: FastifyInstance, ctx: Context): void {
  const { get, post } = pageRoutes(scope, ctx)
  post('/account/email', async (page) => {
    const email = readEmail(page)
    if (email === null) throw new Refusal('invalid')
    await askForEmail(ctx, await page.touch(), email, ctx.now())
    return page.go('/account#email')
  })

  get('/account/email/:token', async (page) => {
    const { member } = sessionOf(page.request)
    const email = await readEmailLink(ctx.db, member.id, page.part('token'))
    const { title } = page.texts.emailLink
    return page.send({ title, isAlone: true, main: renderEmailLink(page, member.name, email) })
  })

  post('/account/email/:token', async ({ request, part, go }) => {
    await confirmEmail(ctx, sessionOf(request), part('token'), ctx.now())
    return go('/account#email')
  })
}

/**
 * Where the links in mails about payments lead. Opening one changes nothing, because mail scanners open links; its button
 * and the mail programs' own (RFC 8058) send the same POST. The token is all that counts: no cookie, no body.
 */
export function mountStop(scope: FastifyInstance, ctx: Context): void {
  const path = '/stop-mails/:token'
  void scope.register(async (stop) => {
    stop.removeAllContentTypeParsers()
    stop.addContentTypeParser('*', { parseAs: 'string' }, async () => ({}))
    stop.get(path, { config: { isOpen: true } }, (request, reply) => {
      const page = openPage(ctx, request, reply)
      const { title } = page.texts.stopMails
      return page.send({ title, isAlone: true, main: renderStop(page, false) })
    })
    stop.post(path, { config: { isOpen: true, isByLink: true } }, async (request, reply) => {
      const page = openPage(ctx, request, reply)
      await stopPaymentMails(ctx.db, page.part('token'))
      const { title } = page.texts.stopMails
      return page.send({ title, isAlone: true, main: renderStop(page, true) })
    })
  })
}

function readValues(values: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries((values ?? {}) as Record<string, unknown>)
  const isFine =
    entries.length <= valuesMax &&
    entries.every(([, value]) => typeof value === 'string' && value.length <= valueLengthMax)
  if (!isFine) throw new Refusal('invalid')
  return Object.fromEntries(entries) as Record<string, string>
}
