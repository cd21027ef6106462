import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import { changeRoleAsOperator } from '../members/change-role.ts'
import { inviteAsOperator } from '../members/invite.ts'
import { isRole, roles } from '../members/member.ts'
import { setOperator as markOperator } from '../members/operators.ts'
import { Refusal } from '../members/refusal.ts'
import { removeAsOperator } from '../members/remove.ts'
import { listInvitations, listStoreMembers } from '../members/rows.ts'
import { checkEmail, checkText } from '../stores/check-text.ts'
import { parseStore, refuse } from './operator.ts'
import { type Options, UsageError } from './usage.ts'

const usage =
  'Usage: member invite STORE --name NAME [--role ROLE] [--email EMAIL], member list STORE, member role STORE MEMBER ROLE, member remove STORE MEMBER or member operator MEMBER on|off.'

/** The operator's commands about people. Each returns the text to print. */
export async function memberCommand(
  ctx: Context,
  actor: Actor,
  [verb, ...words]: readonly string[],
  options: Options,
): Promise<string> {
  if (verb === 'operator') return await setOperator(ctx, actor, words)
  const [store, member, role] = words
  if (!verb || !store) throw new UsageError(usage)
  const storeId = parseStore(store)
  try {
    if (verb === 'invite') return await invite(ctx, storeId, actor, options)
    if (verb === 'list') return await list(ctx, storeId)
    if (verb === 'remove' && member) {
      const removed = await removeAsOperator(ctx, storeId, actor, member, ctx.now())
      return `${removed.name} (${removed.role}) is not a member of ${storeId} any more. The store's log says so.`
    }
    if (verb === 'role' && member && role) return await changeRole(ctx, storeId, actor, member, role)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new UsageError(explain(error, storeId))
  }
  throw new UsageError(usage)
}

async function invite(ctx: Context, storeId: StoreId, actor: Actor, options: Options): Promise<string> {
  const { name, email = null, role = 'owner' } = options
  if (ctx.config.consoleUrl === '')
    throw new UsageError('This deployment has no console to invite members to: set CONSOLE_URL first.')
  if (typeof name !== 'string') throw new UsageError('member invite requires --name NAME.')
  refuse(checkText('--name', name, 100))
  if (typeof email === 'string') refuse(checkEmail('--email', email))
  if (typeof role !== 'string' || !isRole(role))
    throw new UsageError(`--role must be one of ${roles.join(', ')}.`)
  const invitee = { name, email: typeof email === 'string' ? email : null, role }
  const { link, isMailed } = await inviteAsOperator(ctx, storeId, actor, invitee, ctx.now())
  return `${link}\nSend this link to ${name}. It works once, for 24 hours, and is shown only now. Anyone who has it can use it.${isMailed ? ` It is also mailed to ${email}.` : ''}`
}

async function changeRole(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  member: string,
  role: string,
): Promise<string> {
  if (!isRole(role)) throw new UsageError(`The role must be one of ${roles.join(', ')}.`)
  const before = await changeRoleAsOperator(ctx, storeId, actor, { memberId: member, role }, ctx.now())
  return before.role === role
    ? `${before.name} has the role ${role} already.`
    : `${before.name} was ${before.role} of ${storeId} and has the role ${role} from this moment. The store's log says so.`
}

async function setOperator(ctx: Context, actor: Actor, [member, state]: readonly string[]): Promise<string> {
  if (!member || (state !== 'on' && state !== 'off'))
    throw new UsageError('Usage: member operator MEMBER on, or member operator MEMBER off.')
  try {
    const { name } = await markOperator(ctx, actor, member, state === 'on', ctx.now())
    return state === 'on'
      ? `${name} is an operator from this moment. The logs of their stores say so.`
      : `${name} is not an operator any more. The logs of their stores say so.`
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new UsageError(`There is no member ${member}. Run: store list, then member list STORE`)
  }
}

async function list(ctx: Context, storeId: StoreId): Promise<string> {
  const [members, open] = await Promise.all([
    listStoreMembers(ctx.db, storeId),
    listInvitations(ctx.db, storeId),
  ])
  const lines = [
    ...members.map(
      ({ id, role, name, email, isOperator }) =>
        `${id}  ${role}  ${name}${email === null ? '' : ` <${email}>`}${isOperator ? '  operator' : ''}`,
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
    return `The store has an owner, who invites people and gives them roles in the console. If all its owners have lost their passkeys, remove them first: member list ${storeId}, then member remove ${storeId} MEMBER. The store’s event log shows it.`
  return message
}
