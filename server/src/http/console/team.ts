import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { sendsMail } from '../../mails/write.ts'
import { changeRole } from '../../members/change-role.ts'
import { readTouch } from '../../members/confirm.ts'
import {
  inviteMember,
  inviteToRecover,
  type NewInvitation,
  withdrawInvitation,
} from '../../members/invite.ts'
import { type Invitation, isRole, roles, type StoreMember } from '../../members/member.ts'
import { Refusal } from '../../members/refusal.ts'
import { removeMember } from '../../members/remove.ts'
import { mayAct } from '../../members/rights.ts'
import { listInvitations, listStoreMembers } from '../../members/rows.ts'
import { setRefundLimit } from '../../stores/refund-limit.ts'
import { readStore } from '../../stores/rows.ts'
import { fill, type Html, html } from '../page/html.ts'
import { sendPage } from './document.ts'
import { fieldsOf, readEmail, readName, textOf, touchOf } from './fields.ts'
import { formField } from './form-field.ts'
import { isNothing } from './refunds/remainder.ts'
import { type Language, languageOf, type Texts, textsOf } from './texts/choose.ts'
import { forStore, giveFormToken, sessionOf, storeOf } from './visitor.ts'
import { when } from './when.ts'

const path = '/stores/:storeId/members'

/** A store's members: who they are, inviting, roles, lost passkeys, removing. */
export function mountTeam(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, { config: { right: 'members:read' } }, async (request, reply) => {
    const { member } = sessionOf(request)
    const own = storeOf(request)
    const { storeId } = own
    const isOwner = mayAct(own.role, 'members:write')
    const [members, settings, open] = await Promise.all([
      listStoreMembers(ctx.db, storeId),
      readStore(forStore(ctx, storeId).db, storeId),
      isOwner ? listInvitations(ctx.db, storeId) : [],
    ])
    const store = html`${formField(giveFormToken(ctx, request, reply))}<input type="hidden" name="storeId" value="${storeId}">`
    const language = languageOf(request)
    const { team: texts } = language.texts
    const page = { storeId, store, language }
    return sendPage(ctx, request, reply, {
      screen: 'team',
      title: texts.title.replace('{store}', own.storeName),
      main: html`<div class="head plain"><h1>${fill(texts.title, { store: own.storeName })}</h1></div>
<section class="pane">
<ul class="things">${members.map((each) => renderMember(page, each, member.id, isOwner))}</ul>
${open.length > 0 && html`<h2>${texts.open}</h2><ul class="things">${open.map((each) => renderInvitation(page, each))}</ul>`}
${isOwner && renderInvite(page, sendsMail(ctx))}
${renderLimit(page, textsOf(request).refunds, settings?.managerRefundLimit ?? '0', isOwner)}
</section>`,
    })
  })

  const change = { config: { right: 'members:write' } } as const

  scope.post(path, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const [name, role, email] = [readName(request, 'name'), textOf(fields, 'role'), readEmail(request)]
    if (!isRole(role)) throw new Refusal('invalid')
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const made = await inviteMember(ctx, storeId, touch, { name, role, email }, ctx.now())
    return sendLink(ctx, request, reply, made)
  })

  scope.post(`${path}/recover`, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const memberId = textOf(fields, 'memberId')
    const made = await inviteToRecover(ctx, storeId, touch, memberId, ctx.now())
    return sendLink(ctx, request, reply, made)
  })

  scope.post(`${path}/remove`, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await removeMember(ctx, storeId, touch, textOf(fields, 'memberId'), ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/members`).send()
  })

  scope.post(`${path}/role`, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const role = textOf(fields, 'role')
    if (!isRole(role)) throw new Refusal('invalid')
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await changeRole(ctx, storeId, touch, textOf(fields, 'memberId'), role, ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/members`).send()
  })

  scope.post(`${path}/refund-limit`, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await setRefundLimit(forStore(ctx, storeId), storeId, touch, textOf(fields, 'limit'), ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/members`).send()
  })

  scope.post(`${path}/withdraw`, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const invitationId = textOf(fieldsOf(request), 'invitationId')
    await withdrawInvitation(ctx, storeId, sessionOf(request).member.id, invitationId)
    return reply.code(303).header('location', `/stores/${storeId}/members`).send()
  })
}

/** In the answer itself and in no URL: the link is a secret, and it is shown once. */
function sendLink(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { link, invitation, isMailed }: NewInvitation,
): Promise<FastifyReply> {
  const { name, email, storeId, isRecovery, expiresAt } = invitation
  const language = languageOf(request)
  const { link: texts } = language.texts
  return sendPage(ctx, request, reply, {
    title: texts.title,
    isAlone: true,
    main: html`<h1>${fill(texts.heading, { name })}</h1>
<p>${isRecovery ? texts.recover : texts.join} ${fill(texts.about, { time: when(expiresAt, language) })}${isMailed && html` ${fill(texts.mailed, { email: email ?? '' })}`}</p>
<code class="link" tabindex="0">${link}</code>
<form><button type="button" data-copy="${link}" data-done="${texts.copied}">${texts.copy}</button></form>
<p><a href="/stores/${storeId}/members">${texts.back}</a></p>`,
  })
}

/** What every part of the page needs: the store, its hidden fields for forms, and the language. */
type Page = { readonly storeId: string; readonly store: Html; readonly language: Language }

function renderMember(
  { storeId, store, language }: Page,
  shown: StoreMember,
  ownId: string,
  isOwner: boolean,
): Html {
  const { id, name, email, role, createdAt } = shown
  const { team: texts } = language.texts
  const member = html`${store}<input type="hidden" name="memberId" value="${id}">`
  const label = texts.roleOf.replace('{name}', name)
  const choices = roles.map(
    (each) => html`<option value="${each}"${each === role && html` selected`}>${texts.roles[each]}</option>`,
  )
  const forms = html`<div class="acts"><form method="post" action="/stores/${storeId}/members/role" data-confirm="member.role">${member}<select name="role" aria-label="${label}">${choices}</select><button class="quiet">${texts.changeRole}</button></form>
<form method="post" action="/stores/${storeId}/members/recover" data-confirm="member.recover">${member}<button class="quiet">${texts.lostPasskey}</button></form>
<form method="post" action="/stores/${storeId}/members/remove" data-confirm="member.remove">${member}<button class="quiet">${texts.remove}</button></form></div>`
  const since = fill(texts.since, { time: when(createdAt, language) })
  return html`<li><p>${name}${id === ownId && html` <strong>${texts.you}</strong>`}<small>${texts.roles[role]}${email && html`, ${email}`}, ${since}</small></p>${isOwner && id !== ownId && forms}</li>`
}

function renderInvitation({ storeId, store, language }: Page, invitation: Invitation): Html {
  const { id, name, role, isRecovery, expiresAt } = invitation
  const { team: texts } = language.texts
  const until = fill(texts.until, { time: when(expiresAt, language) })
  return html`<li><p>${name}<small>${isRecovery ? texts.newPasskey : texts.roles[role]}, ${until}</small></p>
<form method="post" action="/stores/${storeId}/members/withdraw">${store}<input type="hidden" name="invitationId" value="${id}"><button class="quiet">${texts.withdraw}</button></form></li>`
}

function renderInvite({ storeId, store, language }: Page, isMailed: boolean): Html {
  const { team: texts } = language.texts
  return html`<h2>${texts.invite}</h2>
<form method="post" action="/stores/${storeId}/members" data-confirm="member.invite" class="fields">${store}
<label>${texts.name}<input name="name" required maxlength="100" autocomplete="off"></label>
<label>${isMailed ? texts.emailMailed : texts.email}<input name="email" type="email" maxlength="200" autocomplete="off"></label>
<label>${texts.role}<select name="role">${roles.toReversed().map((role) => html`<option value="${role}">${texts.describeRole[role]}</option>`)}</select></label>
<div><button>${texts.makeLink}</button></div>
</form>`
}

function renderLimit(
  { storeId, store }: Page,
  texts: Texts['refunds'],
  limit: string,
  isOwner: boolean,
): Html {
  const said = isNothing(limit) ? html`${texts.limitNone}` : fill(texts.limitIs, { limit })
  if (!isOwner) return html`<h2>${texts.limitTitle}</h2><p>${said}</p>`
  return html`<h2>${texts.limitTitle}</h2>
<form method="post" action="/stores/${storeId}/members/refund-limit" data-confirm="refund.limit" class="fields">${store}
<p class="soft">${texts.limitAbout}</p>
<label>${texts.limitLabel}<input name="limit" value="${limit}" required inputmode="decimal" pattern="\\d{1,9}(\\.\\d{1,2})?" maxlength="12" autocomplete="off"></label>
<div><button class="quiet">${texts.limitSave}</button></div>
</form>`
}
