import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { sendsMail } from '../../mails/write.ts'
import { actions, openConfirmation, readTouch } from '../../members/confirm.ts'
import { hasIdentity, type Provider } from '../../members/identities.ts'
import { alertKinds, type Membership, type Passkey, type SessionUse } from '../../members/member.ts'
import { addPasskey, openPasskey, removePasskey } from '../../members/passkeys.ts'
import { Refusal } from '../../members/refusal.ts'
import { listPasskeys } from '../../members/rows.ts'
import { endSession, type ListedSession, listSessions } from '../../members/session.ts'
import { listMuted, muteAlerts } from '../../members/silence.ts'
import { fill, type Html, html } from '../page/html.ts'
import { describeBrowser } from './browser.ts'
import { sendPage } from './document.ts'
import { fieldsOf, readName, textOf, touchOf } from './fields.ts'
import { formField } from './form-field.ts'
import { type Locale, localeOf, showMinute } from './formats.ts'
import { startOf } from './frame/screens.ts'
import { renderHead } from './parts.ts'
import { type Language, languageOf, type Texts } from './texts/choose.ts'
import { clearSession, giveFormToken, sessionOf } from './visitor.ts'

/** More than any action has: a webhook endpoint's form has a box for every type of event. */
const valuesMax = 64
/** As long as a URL may be. */
const valueLengthMax = 2_048

/** The member's own page: stores, passkeys, sessions. And the challenges for what takes a touch. */
export function mountAccount(scope: FastifyInstance, ctx: Context, provider: Provider | null): void {
  scope.get('/account', async (request, reply) => {
    const { id, member } = sessionOf(request)
    const [muted, passkeys, sessions, isConnected] = await Promise.all([
      listMuted(ctx.db, member.id),
      listPasskeys(ctx.db, member.id),
      listSessions(ctx, member.id),
      hasIdentity(ctx.db, member.id),
    ])
    const formToken = giveFormToken(ctx, request, reply)
    const field = formField(formToken)
    const language = languageOf(request)
    const locale = localeOf(request)
    const { account: texts } = language.texts
    return sendPage(ctx, request, reply, {
      title: texts.title,
      main: html`${renderHead(texts.title)}
<section class="pane"><h2>${texts.stores}</h2>
<ul class="things">${request.visitor.stores.map(
        (each) =>
          html`<li><p><a href="${startOf(each)}">${each.storeName}</a><small>${
            texts.youAre[each.role]
          }</small></p></li>`,
      )}</ul>
<h2>${texts.passkeys}</h2>
<ul class="things">${passkeys.map((passkey) =>
        renderPasskey(passkey, passkeys.length > 1, field, language.texts, locale),
      )}</ul>
<form data-passkey="add-passkey" class="fields">
<label>${texts.passkeyName}<input name="name" required maxlength="60" placeholder="${
        texts.passkeyExample
      }" autocomplete="off"></label>
<div><button class="quiet">${texts.addPasskey}</button></div>
</form>
${provider && renderProvider(provider, isConnected, field, language)}
<h2>${texts.sessions}</h2>
<ul class="things">${sessions.map((session) =>
        renderSession(session, session.id === id, field, language, locale),
      )}</ul></section>
${
  sendsMail(ctx) &&
  member.email !== null &&
  request.visitor.stores.map((each) => renderAlerts(each, muted.get(each.storeId), field, language))
}`,
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

  scope.post('/passkeys', async (request) => {
    const fields = fieldsOf(request)
    const name = readName(request, 'name')
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await addPasskey(ctx, touch, fields.answer, name, ctx.now())
    return { to: '/account' }
  })

  scope.post('/passkeys/remove', async (request, reply) => {
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await removePasskey(ctx, touch, textOf(fields, 'passkeyId'), ctx.now())
    return reply.code(303).header('location', '/account').send()
  })

  scope.post('/account/alerts', async (request, reply) => {
    const fields = fieldsOf(request)
    const store = request.visitor.stores.find(({ storeId }) => storeId === textOf(fields, 'storeId'))
    if (store?.role !== 'owner') throw new Refusal('not_found')
    const wanted = alertKinds.filter((kind) => textOf(fields, kind) === 'yes')
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await muteAlerts(ctx, store.storeId, touch, wanted, ctx.now())
    return reply.code(303).header('location', '/account').send()
  })

  scope.post('/sessions/end', async (request, reply) => {
    const session = sessionOf(request)
    const sessionId = textOf(fieldsOf(request), 'sessionId')
    await endSession(ctx, session, sessionId)
    if (sessionId === session.id) clearSession(ctx, reply)
    return reply.code(303).header('location', '/account').send()
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

function renderPasskey(
  { id, name, createdAt, lastUsedAt }: Passkey,
  isRemovable: boolean,
  field: Html,
  { account: texts }: Texts,
  locale: Locale,
): Html {
  const made = showMinute(locale, createdAt)
  const life = lastUsedAt
    ? fill(texts.madeAndUsed, { made, used: showMinute(locale, lastUsedAt) })
    : fill(texts.made, { made })
  return html`<li><p>${name}<small>${life}</small></p>${
    isRemovable &&
    html`<form method="post" action="/passkeys/remove" data-confirm="passkey.remove">${field}
<input type="hidden" name="passkeyId" value="${id}"><button class="quiet">${texts.remove}</button></form>`
  }</li>`
}

function renderProvider(
  { host }: Provider,
  isConnected: boolean,
  field: Html,
  { texts: { account: texts } }: Language,
): Html {
  return html`<h2>${texts.provider}</h2>
<ul class="things"><li><p>${host}<small>${isConnected ? texts.connected : texts.notConnected}</small></p>${
    isConnected
      ? html`<form method="post" action="/oidc/disconnect" data-confirm="identity.remove">${field}
<button class="quiet">${texts.disconnect}</button></form>`
      : html`<form data-passkey="connect"><button class="quiet">${texts.connect}</button></form>`
  }</li></ul>`
}

/** What an owner is mailed about a store. Security news are not among the choices. */
function renderAlerts(
  { storeId, storeName }: Membership,
  muted: readonly string[] | undefined,
  field: Html,
  { texts: { account: texts } }: Language,
): Html | null {
  if (!muted) return null
  const boxes = alertKinds.map(
    (kind) =>
      html`<label class="check"><input type="checkbox" name="${kind}" value="yes"${
        !muted.includes(kind) && html` checked`
      }>${texts.alerts[kind]}</label>`,
  )
  return html`<section class="pane"><h2>${fill(texts.mails, { store: storeName })}</h2>
<form class="fields" method="post" action="/account/alerts" data-confirm="alerts.choose">${field}
<input type="hidden" name="storeId" value="${storeId}">${boxes}<div><button class="quiet">${
    texts.saveMails
  }</button></div></form></section>`
}

function renderSession(
  session: ListedSession,
  isThis: boolean,
  field: Html,
  language: Language,
  locale: Locale,
): Html {
  const { account: texts } = language.texts
  const { id, browser, address, createdAt, seenAt, uses } = session
  const [since, seen] = [showMinute(locale, createdAt), showMinute(locale, seenAt)]
  const elsewhere = uses.filter((use) => use.browser !== browser || use.address !== address)
  return html`<li><p>${describeBrowser(browser, language)}${isThis && html` <strong>${texts.here}</strong>`}<small>${fill(
    texts.session,
    { address, since, seen },
  )}</small>${elsewhere.map((use) => renderUse(use, language, locale))}</p>${
    !isThis &&
    html`<form method="post" action="/sessions/end">${field}<input type="hidden" name="sessionId" value="${id}">
<button class="quiet">${texts.end}</button></form>`
  }</li>`
}

function renderUse({ browser, address, at }: SessionUse, language: Language, locale: Locale): Html {
  const parts = { browser: describeBrowser(browser, language), address, time: showMinute(locale, at) }
  return html`<small>${fill(language.texts.account.usedFrom, parts)}</small>`
}
