import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
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
import { checkEmail } from '../../stores/check-text.ts'
import { type Html, html } from '../page/html.ts'
import { when } from './account.ts'
import { formField, sendPage } from './document.ts'
import { fieldsOf, readName, refuse, textOf, touchOf } from './fields.ts'
import { giveFormToken, sessionOf, storeOf } from './visitor.ts'

const path = '/stores/:storeId/members'

/** A store's members: who they are, inviting, roles, lost passkeys, removing. */
export function mountTeam(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, { config: { right: 'members:read' } }, async (request, reply) => {
    const { member } = sessionOf(request)
    const own = storeOf(request)
    const { storeId } = own
    const isOwner = mayAct(own.role, 'members:write')
    const [members, open] = await Promise.all([
      listStoreMembers(ctx.db, storeId),
      isOwner ? listInvitations(ctx.db, storeId) : [],
    ])
    const store = html`${formField(giveFormToken(ctx, request, reply))}<input type="hidden" name="storeId" value="${storeId}">`
    return sendPage(ctx, request, reply, {
      title: `Members of ${own.storeName}`,
      main: html`<h1>Members of ${own.storeName}</h1>
<ul class="things">${members.map((each) => renderMember(each, member.id, isOwner, storeId, store))}</ul>
${open.length > 0 && html`<h2>Open invitations</h2><ul class="things">${open.map((each) => renderInvitation(each, storeId, store))}</ul>`}
${isOwner && renderInvite(storeId, store)}
<p><a href="/">Back to your account</a></p>`,
    })
  })

  const change = { config: { right: 'members:write' } } as const

  scope.post(path, change, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const [name, role, email] = [readName(fields, 'name'), textOf(fields, 'role'), textOf(fields, 'email')]
    if (!isRole(role)) throw new Refusal('invalid')
    if (email !== '') refuse('E-mail', checkEmail('email', email))
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const invitee = { name, role, email: email === '' ? null : email }
    const made = await inviteMember(ctx, storeId, touch, invitee, ctx.now())
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
): FastifyReply {
  const { name, storeId, isRecovery } = invitation
  return sendPage(ctx, request, reply, {
    title: 'Send this link',
    isAlone: true,
    main: html`<h1>Send this link to ${name}</h1>
<p>${isRecovery ? 'With it they make a new passkey. Their old ones stop working then.' : 'With it they make a passkey and join.'} It works once, until ${when(invitation.expiresAt)}, and it is shown only now. Whoever has it can use it, so send it to nobody else.${isMailed && html` It is also on its way to ${invitation.email}.`}</p>
<code class="link">${link}</code>
<form><button type="button" data-copy="${link}" data-done="Copied">Copy the link</button></form>
<p><a href="/stores/${storeId}/members">Back to the members</a></p>`,
  })
}

function renderMember(
  { id, name, email, role, createdAt }: StoreMember,
  ownId: string,
  isOwner: boolean,
  storeId: string,
  store: Html,
): Html {
  const member = html`${store}<input type="hidden" name="memberId" value="${id}">`
  const forms = html`<form method="post" action="/stores/${storeId}/members/role" data-confirm="member.role">${member}<select name="role" aria-label="Role of ${name}">${roles.map((each) => html`<option value="${each}"${each === role && html` selected`}>${each}</option>`)}</select><button class="quiet">Change role</button></form>
<form method="post" action="/stores/${storeId}/members/recover" data-confirm="member.recover">${member}<button class="quiet">Lost passkey</button></form>
<form method="post" action="/stores/${storeId}/members/remove" data-confirm="member.remove">${member}<button class="quiet">Remove</button></form>`
  return html`<li><p>${name}${id === ownId && html` <strong>(you)</strong>`}<small>${role}${email && html`, ${email}`}, since ${when(createdAt)}</small></p>${isOwner && id !== ownId && forms}</li>`
}

function renderInvitation(
  { id, name, role, isRecovery, expiresAt }: Invitation,
  storeId: string,
  store: Html,
): Html {
  return html`<li><p>${name}<small>${isRecovery ? 'new passkey' : role}, until ${when(expiresAt)}</small></p>
<form method="post" action="/stores/${storeId}/members/withdraw">${store}<input type="hidden" name="invitationId" value="${id}"><button class="quiet">Withdraw</button></form></li>`
}

function renderInvite(storeId: string, store: Html): Html {
  return html`<h2>Invite somebody</h2>
<form method="post" action="/stores/${storeId}/members" data-confirm="member.invite" class="fields">${store}
<label>Name<input name="name" required maxlength="100" autocomplete="off"></label>
<label>E-mail, if you want to note it<input name="email" type="email" maxlength="200" autocomplete="off"></label>
<label>Role<select name="role">${roles.toReversed().map((role) => html`<option value="${role}">${describeRole[role]}</option>`)}</select></label>
<div><button>Make a link</button></div>
</form>`
}

const describeRole = {
  owner: 'Owner: everything',
  manager: 'Manager: decides about payments, refunds within a limit',
  developer: 'Developer: keys and webhooks',
  viewer: 'Viewer: sees payments and reports',
} as const
