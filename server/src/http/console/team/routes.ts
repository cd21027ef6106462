import type { FastifyReply } from 'fastify'
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
import { readEmail, readName } from '../fields.ts'
import { sendInvitation } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { renderTeam } from './view.ts'

const path = '/members'

/** A store's members: who they are, inviting, roles, lost passkeys, removing. */
export function mountTeam({ get, post }: StoreRoutes, ctx: Context): void {
  get(path, 'members:read', async (screen) => {
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

  const change = 'members:write'

  post(path, change, async (screen) => {
    const [name, role, email] = [readName(screen, 'name'), screen.field('role'), readEmail(screen)]
    if (!isRole(role)) throw new Refusal('invalid')
    const touch = await screen.touch()
    const made = await inviteMember(ctx, screen.storeId, touch, { name, role, email }, ctx.now())
    return sendLink(screen, made)
  })

  post(`${path}/recover`, change, async (screen) => {
    const touch = await screen.touch()
    const made = await inviteToRecover(ctx, screen.storeId, touch, screen.field('memberId'), ctx.now())
    return sendLink(screen, made)
  })

  post(`${path}/remove`, change, async ({ storeId, touch, field, go }) => {
    await removeMember(ctx, storeId, await touch(), field('memberId'), ctx.now())
    return go('/members')
  })

  post(`${path}/role`, change, async ({ storeId, touch, field, go }) => {
    const role = field('role')
    if (!isRole(role)) throw new Refusal('invalid')
    await changeRole(ctx, storeId, await touch(), { memberId: field('memberId'), role }, ctx.now())
    return go('/members')
  })

  post(`${path}/refund-limit`, change, async ({ ctx: mine, storeId, touch, field, go }) => {
    await setRefundLimit(mine, storeId, await touch(), field('limit'), ctx.now())
    return go('/members')
  })

  post(`${path}/withdraw`, change, async ({ storeId, session, field, go }) => {
    await withdrawInvitation(ctx, storeId, session.member.id, field('invitationId'))
    return go('/members')
  })
}

function sendLink(screen: Screen, made: NewInvitation): Promise<FastifyReply> {
  const texts = screen.texts.link
  const purpose = made.invitation.isRecovery ? texts.recover : texts.join
  return sendInvitation(screen, made, texts, `${screen.base}/members`, purpose)
}
