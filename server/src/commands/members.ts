import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import { inviteAsOperator } from '../members/invite.ts'
import { isRole, roles } from '../members/member.ts'
import { Refusal } from '../members/refusal.ts'
import { removeAsOperator } from '../members/remove.ts'
import { listInvitations, listStoreMembers } from '../members/rows.ts'
import { checkEmail, checkText } from '../stores/check-text.ts'
import { type Options, parseStore, refuse, UsageError } from './operator.ts'

const usage =
  'Usage: member invite STORE --name NAME [--role ROLE] [--email EMAIL], member list STORE or member remove STORE MEMBER.'

/** The operator's commands about people. Each returns the text to print. */
export async function memberCommand(
  ctx: Context,
  actor: Actor,
  [verb, store, member]: readonly string[],
  options: Options,
): Promise<string> {
  if (!verb || !store) throw new UsageError(usage)
  const storeId = parseStore(store)
  try {
    if (verb === 'invite') return await invite(ctx, storeId, actor, options)
    if (verb === 'list') return await list(ctx, storeId)
    if (verb === 'remove' && member) {
      const { name, role } = await removeAsOperator(ctx, storeId, actor, member, ctx.now())
      return `${name} (${role}) is not a member of ${storeId} any more. The store's log says so.`
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new UsageError(explain(error, storeId))
  }
  throw new UsageError(usage)
}

async function invite(ctx: Context, storeId: StoreId, actor: Actor, options: Options): Promise<string> {
  const { name, email = null, role = 'owner' } = options
  if (ctx.config.consoleUrl === '')
    throw new UsageError('There is no console to invite anybody to: set CONSOLE_URL first.')
  if (typeof name !== 'string') throw new UsageError('member invite requires --name NAME.')
  refuse(checkText('--name', name, 100))
  if (typeof email === 'string') refuse(checkEmail('--email', email))
  if (typeof role !== 'string' || !isRole(role))
    throw new UsageError(`--role must be one of ${roles.join(', ')}.`)
  const invitee = { name, email: typeof email === 'string' ? email : null, role }
  const { link } = await inviteAsOperator(ctx, storeId, actor, invitee, ctx.now())
  return `${link}\nSend this link to ${name}. It works once, for 24 hours, and is shown only now. Whoever has it can use it.`
}

async function list(ctx: Context, storeId: StoreId): Promise<string> {
  const [members, open] = await Promise.all([
    listStoreMembers(ctx.db, storeId),
    listInvitations(ctx.db, storeId),
  ])
  const lines = [
    ...members.map(
      ({ id, role, name, email }) => `${id}  ${role}  ${name}${email === null ? '' : ` <${email}>`}`,
    ),
    ...open.map(
      ({ memberId, role, name, expiresAt }) =>
        `${memberId}  ${role}  ${name}  invited, until ${expiresAt.toISOString()}`,
    ),
  ]
  return lines.join('\n') || 'The store has no members. Run: member invite'
}

function explain({ reason, message }: Refusal, storeId: StoreId): string {
  if (reason === 'not_found')
    return 'There is no such store or member. Run: store list, then member list STORE'
  if (reason === 'has_owner')
    return `The store has an owner, who invites people in the console. If all its owners have lost their passkeys, remove them first: member list ${storeId}, then member remove ${storeId} MEMBER. The store is told.`
  return message
}
