import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { placedAt, startSession } from '../http/console/visitor.ts'
import { type MemberId, newId, type StoreId } from '../ids.ts'
import type { Invitation } from '../members/member.ts'
import {
  insertInvitation,
  insertMember,
  insertMembership,
  listPasskeys,
  listStoreMembers,
  withdrawFor,
} from '../members/rows.ts'
import { type Browser, deleteSession, openSession, readSession } from '../members/session.ts'
import { noteWalletsSeen } from '../members/silence.ts'
import { hashToken, newToken } from '../members/token.ts'

/**
 * `dev` prints a link that signs the developer in to the console on their own machine, once and without a passkey.
 *
 * A deployment cannot have this. The route is not part of the console: `dev` adds it to its own, and only the command
 * `dev` loads this file. It is refused if the console is not http://localhost, or if a network with anything of value is
 * served. It adds no member: the link carries the token of a session, which only a process with write access to the
 * database can make, and replaces it with another.
 */
const path = '/dev/sign-in'
const ownerName = 'Demo owner'

/** The demo store's owner, who has no passkey until the developer adds one. */
export async function makeDemoOwner(ctx: Context, storeId: StoreId): Promise<MemberId> {
  const members = await listStoreMembers(ctx.db, storeId)
  const owner = members.find(({ role }) => role === 'owner')
  if (owner) return owner.id
  const now = ctx.now()
  const id = newId('mem', ctx.config.cell, now)
  await ctx.db.transaction(async (tx) => {
    await insertMember(tx, { id, name: ownerName }, now)
    await insertMembership(tx, storeId, id, 'owner', now)
  })
  // The developer needs no news about the demo store's wallet.
  await noteWalletsSeen(ctx.db, storeId, id, now)
  return id
}

/** A link that signs in as this member. */
export async function makeSignInLink(ctx: Context, memberId: MemberId): Promise<string> {
  requireLocal(ctx)
  const browser: Browser = { token: '', userAgent: 'dev', address: '127.0.0.1', network: '127.0' }
  const token = await ctx.db.transaction((tx) =>
    openSession(ctx, tx, { memberId, passkeyId: null, browser, now: ctx.now() }),
  )
  return `${ctx.config.consoleUrl}${path}?token=${token}`
}

/** A link to make a passkey, which some actions of the console need; null if there is one already. */
export async function makePasskeyLink(
  ctx: Context,
  storeId: StoreId,
  memberId: MemberId,
): Promise<string | null> {
  if ((await listPasskeys(ctx.db, memberId)).length > 0) return null
  const [token, now] = [newToken(), ctx.now()]
  const invitation: Invitation = {
    id: newId('inv', ctx.config.cell, now),
    storeId,
    memberId,
    isRecovery: true,
    name: ownerName,
    email: null,
    role: 'owner',
    invitedBy: null,
    createdAt: now,
    expiresAt: new Date(now.getTime() + 86_400_000),
  }
  await ctx.db.transaction(async (tx) => {
    await withdrawFor(tx, memberId)
    await insertInvitation(tx, invitation, hashToken(token))
  })
  return `${ctx.config.consoleUrl}/enrol#${token}`
}

export function offerSignIn(console: FastifyInstance, ctx: Context): void {
  requireLocal(ctx)
  console.get(path, { config: { isOpen: true } }, async (request, reply) => {
    const { token = '' } = request.query as { token?: string }
    const session = await readSession(ctx, token)
    if (session) {
      const browser = placedAt(request, '')
      const own = await ctx.db.transaction(async (tx) => {
        // Of two who follow the link at once, one finds it used.
        const isFirst = await deleteSession(tx, session.member.id, session.id)
        const opened = { memberId: session.member.id, passkeyId: null, browser, now: ctx.now() }
        return isFirst ? await openSession(ctx, tx, opened) : null
      })
      if (own !== null) startSession(ctx, reply, own)
    }
    // The console shows this page to a member who is signed in, and asks all others to sign in.
    return reply.code(303).header('location', '/').send()
  })
}

function requireLocal({ config }: Context): void {
  const { protocol, hostname } = new URL(config.consoleUrl)
  assert(
    protocol === 'http:' &&
      hostname === 'localhost' &&
      config.networks.every((id) => id === 'LOCAL' || id === 'SIMULATED'),
    'signing in by a link is for the local chain on this machine only',
  )
}
