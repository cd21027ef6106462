import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Context } from '../../../context.ts'
import { sendsMail } from '../../../mails/write.ts'
import { changeRole } from '../../../members/change-role.ts'
import {
  inviteMember,
  inviteToRecover,
  type NewInvitation,
  withdrawInvitation,
} from '../../../members/invite.ts'
import { isRole } from '../../../members/member.ts'
import { Refusal } from '../../../members/refusal.ts'
import { removeMember } from '../../../members/remove.ts'
import { listInvitations, listStoreMembers } from '../../../members/rows.ts'
import { readStore } from '../../../stores/rows.ts'
import { setRefundLimit } from '../../../stores/update.ts'
import { fill, html } from '../../page/html.ts'
import { readEmail, readName } from '../fields.ts'
import { showMinute } from '../formats.ts'
import { sendSecret } from '../parts.ts'
import { openScreen, type Screen } from '../screen.ts'
import { renderTeam } from './view.ts'

const path = '/stores/:storeId/members'

/** A store's members: who they are, inviting, roles, lost passkeys, removing. */
export function mountTeam(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, { config: { right: 'members:read' } }, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId } = screen
    const [members, settings, invitations] = await Promise.all([
      listStoreMembers(ctx.db, storeId),
      readStore(screen.ctx.db, storeId),
      screen.may('members:write') ? listInvitations(ctx.db, storeId) : [],
    ])
    const limit = settings?.managerRefundLimit ?? '0'
    return screen.send({
      screen: 'team',
      title: screen.texts.team.title.replace('{store}', screen.store.storeName),
      main: renderTeam(screen, { members, invitations, limit, isMailed: sendsMail(ctx) }),
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
