import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Context } from '../../context.ts'
import { sendsMail } from '../../mails/write.ts'
import { changeRole } from '../../members/change-role.ts'
import {
  inviteMember,
  inviteToRecover,
  type NewInvitation,
  withdrawInvitation,
} from '../../members/invite.ts'
import { type Invitation, isRole, roles, type StoreMember } from '../../members/member.ts'
import { Refusal } from '../../members/refusal.ts'
import { removeMember } from '../../members/remove.ts'
import { listInvitations, listStoreMembers } from '../../members/rows.ts'
import { readStore } from '../../stores/rows.ts'
import { setRefundLimit } from '../../stores/update.ts'
import { fill, type Html, html } from '../page/html.ts'
import { readEmail, readName } from './fields.ts'
import { showMinute } from './formats.ts'
import { renderField, renderHead, sendSecret } from './parts.ts'
import { isNothing } from './refunds/remainder.ts'
import { openScreen, type Screen } from './screen.ts'

const path = '/stores/:storeId/members'

/** A store's members: who they are, inviting, roles, lost passkeys, removing. */
export function mountTeam(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, { config: { right: 'members:read' } }, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId, session } = screen
    const { storeName } = screen.store
    const isOwner = screen.may('members:write')
    const [members, settings, open] = await Promise.all([
      listStoreMembers(ctx.db, storeId),
      readStore(screen.ctx.db, storeId),
      isOwner ? listInvitations(ctx.db, storeId) : [],
    ])
    const texts = screen.texts.team
    return screen.send({
      screen: 'team',
      title: texts.title.replace('{store}', storeName),
      main: html`${renderHead(fill(texts.title, { store: storeName }))}
<section class="pane">
<ul class="things">${members.map((each) => renderMember(screen, each, session.member.id, isOwner))}</ul>
${
  open.length > 0 &&
  html`<h2>${texts.open}</h2>
<ul class="things">${open.map((each) => renderInvitation(screen, each))}</ul>`
}
${isOwner && renderInvite(screen, sendsMail(ctx))}
${renderLimit(screen, settings?.managerRefundLimit ?? '0', isOwner)}
</section>`,
    })
  })

  const change = { config: { right: 'members:write' } } as const

  scope.post(path, change, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const [name, role, email] = [readName(request, 'name'), screen.field('role'), readEmail(request)]
    if (!isRole(role)) throw new Refusal('invalid')
    const touch = await screen.touch()
    const made = await inviteMember(ctx, screen.storeId, touch, { name, role, email }, ctx.now())
    return sendLink(screen, made)
  })

  scope.post(`${path}/recover`, change, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const touch = await screen.touch()
    const made = await inviteToRecover(ctx, screen.storeId, touch, screen.field('memberId'), ctx.now())
    return sendLink(screen, made)
  })

  scope.post(`${path}/remove`, change, async (request, reply) => {
    const { storeId, touch, field, go } = openScreen(ctx, request, reply)
    await removeMember(ctx, storeId, await touch(), field('memberId'), ctx.now())
    return go('/members')
  })

  scope.post(`${path}/role`, change, async (request, reply) => {
    const { storeId, touch, field, go } = openScreen(ctx, request, reply)
    const role = field('role')
    if (!isRole(role)) throw new Refusal('invalid')
    await changeRole(ctx, storeId, await touch(), { memberId: field('memberId'), role }, ctx.now())
    return go('/members')
  })

  scope.post(`${path}/refund-limit`, change, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    await setRefundLimit(mine, storeId, await touch(), field('limit'), ctx.now())
    return go('/members')
  })

  scope.post(`${path}/withdraw`, change, async (request, reply) => {
    const { storeId, session, field, go } = openScreen(ctx, request, reply)
    await withdrawInvitation(ctx, storeId, session.member.id, field('invitationId'))
    return go('/members')
  })
}

function sendLink(screen: Screen, { link, invitation, isMailed }: NewInvitation): Promise<FastifyReply> {
  const { name, email, isRecovery, expiresAt } = invitation
  const texts = screen.texts.link
  const about = fill(texts.about, { time: showMinute(screen.locale, expiresAt) })
  const mailed = isMailed && html` ${fill(texts.mailed, { email: email ?? '' })}`
  return sendSecret(screen, {
    title: texts.title,
    heading: fill(texts.heading, { name }),
    about: html`${isRecovery ? texts.recover : texts.join} ${about}${mailed}`,
    secret: link,
    copy: texts.copy,
    back: { href: `${screen.base}/members`, text: texts.back },
  })
}

function renderMember(
  { base, storeFields, texts: { team: texts }, locale }: Screen,
  shown: StoreMember,
  ownId: string,
  isOwner: boolean,
): Html {
  const { id, name, email, role, createdAt } = shown
  const member = html`${storeFields}<input type="hidden" name="memberId" value="${id}">`
  const label = texts.roleOf.replace('{name}', name)
  const choices = roles.map(
    (each) => html`<option value="${each}"${each === role && html` selected`}>${texts.roles[each]}</option>`,
  )
  const forms = html`<div class="acts">
<form method="post" action="${base}/members/role" data-confirm="member.role">${member}
<select name="role" aria-label="${label}">${choices}</select><button class="quiet">${texts.changeRole}</button></form>
<form method="post" action="${base}/members/recover" data-confirm="member.recover">${member}
<button class="quiet">${texts.lostPasskey}</button></form>
<form method="post" action="${base}/members/remove" data-confirm="member.remove">${member}
<button class="quiet">${texts.remove}</button></form></div>`
  const since = fill(texts.since, { time: showMinute(locale, createdAt) })
  return html`<li><p>${name}${id === ownId && html` <strong>${texts.you}</strong>`}<small>${texts.roles[role]}${
    email && html`, ${email}`
  }, ${since}</small></p>${isOwner && id !== ownId && forms}</li>`
}

function renderInvitation(screen: Screen, invitation: Invitation): Html {
  const { base, storeFields, locale } = screen
  const { id, name, role, isRecovery, expiresAt } = invitation
  const { team: texts } = screen.texts
  const until = fill(texts.until, { time: showMinute(locale, expiresAt) })
  return html`<li><p>${name}<small>${isRecovery ? texts.newPasskey : texts.roles[role]}, ${until}</small></p>
<form method="post" action="${base}/members/withdraw">${storeFields}
<input type="hidden" name="invitationId" value="${id}"><button class="quiet">${texts.withdraw}</button></form></li>`
}

function renderInvite({ base, storeFields, texts: { team: texts } }: Screen, isMailed: boolean): Html {
  const label = isMailed ? texts.emailMailed : texts.email
  return html`<h2>${texts.invite}</h2>
<form method="post" action="${base}/members" data-confirm="member.invite" class="fields">${storeFields}
<label>${texts.name}<input name="name" required maxlength="100" autocomplete="off"></label>
${renderField(label, 'email', { type: 'email', maxlength: 200, autocomplete: 'off' })}
<label>${texts.role}<select name="role">${roles
    .toReversed()
    .map((role) => html`<option value="${role}">${texts.describeRole[role]}</option>`)}</select></label>
<div><button>${texts.makeLink}</button></div>
</form>`
}

function renderLimit(screen: Screen, limit: string, isOwner: boolean): Html {
  const { base, storeFields } = screen
  const texts = screen.texts.refunds
  const said = isNothing(limit) ? html`${texts.limitNone}` : fill(texts.limitIs, { limit })
  if (!isOwner) return html`<h2>${texts.limitTitle}</h2><p>${said}</p>`
  return html`<h2>${texts.limitTitle}</h2>
<form method="post" action="${base}/members/refund-limit" data-confirm="refund.limit" class="fields">${storeFields}
<p class="soft">${texts.limitAbout}</p>
<label>${texts.limitLabel}<input name="limit" value="${
    limit
  }" required inputmode="decimal" pattern="\\d{1,9}(\\.\\d{1,2})?" maxlength="12" autocomplete="off"></label>
<div><button class="quiet">${texts.limitSave}</button></div>
</form>`
}
