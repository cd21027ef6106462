import type { Actor, StoreStanding } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { inviteAsOperatorIn, type NewInvitation } from '../members/invite.ts'
import type { Session } from '../members/member.ts'
import { Refusal } from '../members/refusal.ts'
import { lockMember } from '../members/rows.ts'
import type { Mode } from '../networks.ts'
import { createStoreIn } from './create.ts'
import { standingOf } from './rows.ts'
import { decideStanding, type StandingDecision } from './standing.ts'
import { networksFor } from './store.ts'

/**
 * An operator's actions on stores in the console, each with a touch of their passkey. The operator flag is read again
 * in the transaction. Without it, nothing here exists for the member.
 */
export async function decideAsOperator(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  decision: StandingDecision,
  now: Date,
): Promise<void> {
  const { verb, ...reason } = decision
  await ctx.db.transaction(async (tx) => {
    const actor = await requireOperator(tx, touch.session)
    await useTouch(ctx, tx, touch, { action: `store.${verb}`, values: { storeId, ...reason } }, now)
    await decideStanding(ctx, tx, { storeId, actor, decision, now })
  })
}

/** Creates a store and the link for its first owner: both or neither. */
export async function createStoreAsOperator(
  ctx: Context,
  touch: Touch,
  wanted: {
    readonly storeName: string
    readonly mode: Mode
    readonly name: string
    readonly email: string | null
  },
  now: Date,
): Promise<NewInvitation> {
  const { storeName, mode, name, email } = wanted
  if (networksFor(ctx, mode).length === 0) throw new Refusal('invalid')
  return await ctx.db.transaction(async (tx) => {
    const actor = await requireOperator(tx, touch.session)
    await useTouch(
      ctx,
      tx,
      touch,
      { action: 'store.create', values: { storeName, mode, name, email: email ?? '' } },
      now,
    )
    const { id } = await createStoreIn(ctx, tx, { name: storeName, mode }, now)
    const invitee = { name, email, role: 'owner' } as const
    return await inviteAsOperatorIn(ctx, tx, { storeId: id, operator: actor, invitee, now })
  })
}

/** A link for the first owner of a store that has none. */
export async function inviteOwnerAsOperator(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  { name, email }: { readonly name: string; readonly email: string | null },
  now: Date,
): Promise<NewInvitation> {
  return await ctx.db.transaction(async (tx) => {
    const actor = await requireOperator(tx, touch.session)
    await useTouch(
      ctx,
      tx,
      touch,
      { action: 'store.invite', values: { storeId, name, email: email ?? '' } },
      now,
    )
    const invitee = { name, email, role: 'owner' } as const
    return await inviteAsOperatorIn(ctx, tx, { storeId, operator: actor, invitee, now })
  })
}

async function requireOperator(tx: Transaction, { member }: Session): Promise<Actor> {
  if (!(await lockMember(tx, member.id))) throw new Refusal('not_found')
  return { type: 'operator', id: member.id, name: member.name }
}

/** A store as an operator sees it: its name and its health, but nothing of its payments. */
export type StoreOverview = {
  readonly id: StoreId
  readonly name: string
  readonly mode: Mode
  readonly standing: StoreStanding
  readonly suspendedReason: string | null
  readonly isSignedUp: boolean
  readonly provenAt: Date | null
  readonly createdAt: Date
  readonly hasOwner: boolean
  readonly hasWallet: boolean
  /** Webhook endpoints whose deliveries fail, or that were disabled because of it. */
  readonly failingEndpoints: number
}

const columns = `s.id, s.name, s.mode, ${standingOf} as standing, s.suspended_reason as "suspendedReason",
  s.signed_up as "isSignedUp", s.proven_at as "provenAt", s.created_at as "createdAt",
  exists (select 1 from memberships m where m.store_id = s.id and m.role = 'owner') as "hasOwner",
  exists (select 1 from wallets w where w.store_id = s.id and w.retired_at is null and w.registration > 0) as "hasWallet",
  (select count(*)::integer from webhook_endpoints e where e.store_id = s.id and e.deleted_at is null
    and (e.failing_since is not null or e.disabled_reason = 'failing')) as "failingEndpoints"`

/** Newest first. `search` is a store's id, or part of its name. */
export async function listOverviews(
  db: Database,
  wanted: {
    readonly search: string
    readonly standing: StoreStanding | null
    readonly before: string | null
    readonly limit: number
  },
): Promise<StoreOverview[]> {
  const { search, standing, before, limit } = wanted
  return await db.query<StoreOverview>(
    `select ${columns} from stores s
     where ($1 = '' or s.id = $1 or strpos(lower(s.name), lower($1)) > 0)
       and ($2::text is null or ${standingOf} = $2) and ($3::text is null or s.id < $3)
     order by s.id desc limit $4`,
    [search, standing, before, limit],
  )
}

/** How many stores wait for an operator. */
export async function countWaiting(db: Database): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from stores s
     where s.admission <> 'approved' and ${standingOf} = 'waiting'`,
  )
  return row?.count ?? 0
}

export async function readOverview(db: Database, storeId: string): Promise<StoreOverview | null> {
  const [row] = await db.query<StoreOverview>(`select ${columns} from stores s where s.id = $1`, [storeId])
  return row ?? null
}
