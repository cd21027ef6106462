import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { actions, openConfirmation, readTouch } from '../../members/confirm.ts'
import type { Provider } from '../../members/identities.ts'
import { hasIdentity } from '../../members/identity-rows.ts'
import type { Passkey } from '../../members/member.ts'
import { listPasskeys } from '../../members/passkey-rows.ts'
import { addPasskey, openPasskey, removePasskey } from '../../members/passkeys.ts'
import { Refusal } from '../../members/refusal.ts'
import { mayAct } from '../../members/rights.ts'
import { listMemberships } from '../../members/rows.ts'
import { endSession, listSessions } from '../../members/session.ts'
import type { ListedSession } from '../../members/session-rows.ts'
import { fill, type Html, html } from '../page/html.ts'
import { describeBrowser } from './browser.ts'
import { formField, sendPage } from './document.ts'
import { fieldsOf, readName, textOf, touchOf } from './fields.ts'
import { languageOf } from './languages/choose.ts'
import type { Language } from './languages/language.ts'
import { clearSession, giveFormToken, sessionOf } from './visitor.ts'
import { renderNews } from './wallet-news.ts'
import { when } from './when.ts'

/** More than any action has. */
const valuesMax = 8
const valueLengthMax = 400

/** The member's own page: stores, passkeys, sessions. And the challenges for what takes a touch. */
export function mountAccount(scope: FastifyInstance, ctx: Context, provider: Provider | null): void {
  scope.get('/', async (request, reply) => {
    const { id, member } = sessionOf(request)
    const [memberships, passkeys, sessions, isConnected, news] = await Promise.all([
      listMemberships(ctx.db, member.id),
      listPasskeys(ctx.db, member.id),
      listSessions(ctx, member.id),
      hasIdentity(ctx.db, member.id),
      renderNews(ctx, request, reply),
    ])
    const formToken = giveFormToken(ctx, request, reply)
    const field = formField(formToken)
    const language = languageOf(request)
    const { account: texts } = language.texts
    return sendPage(ctx, request, reply, {
      title: texts.title,
      main: html`<h1>${texts.title}</h1>
${news}
<h2>${texts.stores}</h2>
<ul class="things">${memberships.map(
        ({ storeId, storeName, role }) =>
          html`<li><p>${storeName}<small>${texts.youAre[role]}</small></p><span class="links">${mayAct(role, 'wallets:read') && html`<a href="/stores/${storeId}/wallets">${texts.wallets}</a>`}${mayAct(role, 'members:read') && html`<a href="/stores/${storeId}/members">${texts.members}</a>`}</span></li>`,
      )}</ul>
<h2>${texts.passkeys}</h2>
<ul class="things">${passkeys.map((passkey) => renderPasskey(passkey, passkeys.length > 1, field, language))}</ul>
<form data-passkey="add-passkey" class="fields">
<label>${texts.passkeyName}<input name="name" required maxlength="60" placeholder="${texts.passkeyExample}" autocomplete="off"></label>
<div><button class="quiet">${texts.addPasskey}</button></div>
</form>
${provider && renderProvider(provider, isConnected, field, language)}
<h2>${texts.sessions}</h2>
<ul class="things">${sessions.map((session) => renderSession(session, session.id === id, field, language))}</ul>`,
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
    return { to: '/' }
  })

  scope.post('/passkeys/remove', async (request, reply) => {
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await removePasskey(ctx, touch, textOf(fields, 'passkeyId'), ctx.now())
    return reply.code(303).header('location', '/').send()
  })

  scope.post('/sessions/end', async (request, reply) => {
    const session = sessionOf(request)
    const sessionId = textOf(fieldsOf(request), 'sessionId')
    await endSession(ctx, session, sessionId)
    if (sessionId === session.id) clearSession(ctx, reply)
    return reply.code(303).header('location', '/').send()
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
  language: Language,
): Html {
  const { account: texts } = language.texts
  const made = when(createdAt, language)
  const life = lastUsedAt
    ? fill(texts.madeAndUsed, { made, used: when(lastUsedAt, language) })
    : fill(texts.made, { made })
  return html`<li><p>${name}<small>${life}</small></p>${
    isRemovable &&
    html`<form method="post" action="/passkeys/remove" data-confirm="passkey.remove">${field}<input type="hidden" name="passkeyId" value="${id}"><button class="quiet">${texts.remove}</button></form>`
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
      ? html`<form method="post" action="/oidc/disconnect" data-confirm="identity.remove">${field}<button class="quiet">${texts.disconnect}</button></form>`
      : html`<form data-passkey="connect"><button class="quiet">${texts.connect}</button></form>`
  }</li></ul>`
}

function renderSession(session: ListedSession, isThis: boolean, field: Html, language: Language): Html {
  const { account: texts } = language.texts
  const { id, browser, address, createdAt, seenAt } = session
  const [since, seen] = [when(createdAt, language), when(seenAt, language)]
  return html`<li><p>${describeBrowser(browser, language)}${isThis && html` <strong>${texts.here}</strong>`}<small>${fill(texts.session, { address, since, seen })}</small></p>${
    !isThis &&
    html`<form method="post" action="/sessions/end">${field}<input type="hidden" name="sessionId" value="${id}"><button class="quiet">${texts.end}</button></form>`
  }</li>`
}
