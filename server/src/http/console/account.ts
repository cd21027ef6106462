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
import { type Html, html } from '../page/html.ts'
import { describeBrowser } from './browser.ts'
import { formField, sendPage } from './document.ts'
import { fieldsOf, readName, textOf, touchOf } from './fields.ts'
import { clearSession, giveFormToken, sessionOf } from './visitor.ts'

/** More than any action has. */
const valuesMax = 8
const valueLengthMax = 400

/** The member's own page: stores, passkeys, sessions. And the challenges for what takes a touch. */
export function mountAccount(scope: FastifyInstance, ctx: Context, provider: Provider | null): void {
  scope.get('/', async (request, reply) => {
    const { id, member } = sessionOf(request)
    const [memberships, passkeys, sessions, isConnected] = await Promise.all([
      listMemberships(ctx.db, member.id),
      listPasskeys(ctx.db, member.id),
      listSessions(ctx, member.id),
      hasIdentity(ctx.db, member.id),
    ])
    const formToken = giveFormToken(ctx, request, reply)
    const field = formField(formToken)
    return sendPage(ctx, request, reply, {
      title: 'Your account',
      main: html`<h1>Your account</h1>
<h2>Stores</h2>
<ul class="things">${memberships.map(
        ({ storeId, storeName, role }) =>
          html`<li><p>${storeName}<small>You are ${role === 'owner' ? 'an' : 'a'} ${role}</small></p>${mayAct(role, 'members:read') && html`<a href="/stores/${storeId}/members">Members</a>`}</li>`,
      )}</ul>
<h2>Passkeys</h2>
<ul class="things">${passkeys.map((passkey) => renderPasskey(passkey, passkeys.length > 1, field))}</ul>
<form data-passkey="add-passkey" class="fields">
<label>Name of another passkey<input name="name" required maxlength="60" placeholder="Security key" autocomplete="off"></label>
<div><button class="quiet">Add a passkey</button></div>
</form>
${provider && renderProvider(provider, isConnected, field)}
<h2>Where you are signed in</h2>
<ul class="things">${sessions.map((session) => renderSession(session, session.id === id, field))}</ul>`,
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
    const name = readName(fields, 'name')
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
): Html {
  return html`<li><p>${name}<small>Made ${when(createdAt)}${lastUsedAt && html`, last used ${when(lastUsedAt)}`}</small></p>${
    isRemovable &&
    html`<form method="post" action="/passkeys/remove" data-confirm="passkey.remove">${field}<input type="hidden" name="passkeyId" value="${id}"><button class="quiet">Remove</button></form>`
  }</li>`
}

function renderProvider({ host }: Provider, isConnected: boolean, field: Html): Html {
  return html`<h2>Company sign-in</h2>
<ul class="things"><li><p>${host}<small>${isConnected ? 'Your account there signs you in.' : 'Not connected. Your passkey stays what confirms changes.'}</small></p>${
    isConnected
      ? html`<form method="post" action="/oidc/disconnect" data-confirm="identity.remove">${field}<button class="quiet">Disconnect</button></form>`
      : html`<form data-passkey="connect"><button class="quiet">Connect</button></form>`
  }</li></ul>`
}

function renderSession(session: ListedSession, isThis: boolean, field: Html): Html {
  const { id, browser, address, createdAt, seenAt } = session
  return html`<li><p>${describeBrowser(browser)}${isThis && html` <strong>(here)</strong>`}<small>From ${address}, since ${when(createdAt)}, last seen ${when(seenAt)}</small></p>${
    !isThis &&
    html`<form method="post" action="/sessions/end">${field}<input type="hidden" name="sessionId" value="${id}"><button class="quiet">End</button></form>`
  }</li>`
}

const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })

export function when(time: Date): Html {
  return html`<time datetime="${time.toISOString()}">${format.format(time)} UTC</time>`
}
