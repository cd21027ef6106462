import type { Actor } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId } from '../../../ids.ts'
import type { Acting } from '../../../members/act.ts'
import type { Role } from '../../../members/member.ts'
import { Refusal } from '../../../members/refusal.ts'
import type { Rails } from '../../../payments/rail.ts'
import { openRails } from '../../../payments/rails.ts'
import { Problem } from '../../../problems.ts'
import { confirmAddress, judgeNamed } from '../../../refunds/address-requests/confirm.ts'
import { createAddressRequest } from '../../../refunds/address-requests/create.ts'
import { cancelRefund } from '../../../refunds/cancel.ts'
import { prepareRefund } from '../../../refunds/prepare.ts'
import { listRefunds, readRefund } from '../../../refunds/read.ts'
import { toWire } from '../../../refunds/refund.ts'
import { findRefund } from '../../../refunds/rows.ts'
import { declareRefund, nameTransaction } from '../../../refunds/self-sent.ts'
import { signRefund } from '../../../refunds/sign.ts'
import { fill, html } from '../../page/html.ts'
import { showExactTime } from '../formats.ts'
import { renderApiLine, sendSecret } from '../parts.ts'
import { inWords, type Screen, type StoreRoutes, sentenceFor } from '../screen.ts'
import { mountCreating } from './create.ts'
import { type One, pathOf, renderList, renderOne, statuses } from './view.ts'

const path = '/refunds'
const reading = 'refunds:read'
const writing = 'refunds:write'
const rowsPerPage = 50

/** Refunds: the list, one refund with its next step, and creating one. */
export function mountRefunds(store: StoreRoutes, ctx: Context): void {
  const rails = openRails(ctx)

  store.get(path, reading, async (screen) => {
    const status = statuses.find((each) => each === screen.asked('status')) ?? null
    const cursor = isId('rf', screen.asked('cursor')) ? screen.asked('cursor') : null
    const wanted = { status, cursor, limit: rowsPerPage }
    const { data: refunds, nextCursor } = await listRefunds(screen.ctx, screen.storeId, wanted)
    const main = renderList(screen, { status, cursor, refunds, nextCursor })
    const parameters = new URLSearchParams({ ...(status && { status }), limit: `${rowsPerPage}` })
    return screen.send({
      screen: 'refunds',
      title: screen.texts.refunds.title,
      isLive: true,
      main: html`${main}${renderApiLine(screen, { path: `/refunds?${parameters}` })}`,
    })
  })

  store.get(`${path}/:refundId`, reading, (screen) => sendOne(screen, null))

  mountActs(store, ctx, rails)
  mountSigning(store, ctx, rails)
  mountCreating(store, ctx)
}

/**
 * A store's actions on a refund that need no wallet. Naming the recipient takes a touch, and so does declaring a
 * payment that cannot be checked.
 */
function mountActs({ post }: StoreRoutes, ctx: Context, rails: Rails): void {
  const on = (act: string, work: (screen: Screen, id: string) => Promise<unknown>) =>
    post(`${path}/:refundId/${act}`, writing, (screen) => answer(screen, work))

  on('cancel', ({ act, storeId }, id) =>
    act((acting) => cancelRefund(acting.ctx, storeId, acting.actor, id, ctx.now())),
  )

  on('transaction', ({ act, storeId, field }, id) =>
    act((acting) =>
      nameTransaction(acting.ctx, rails, storeId, id, {
        transaction: field('transaction').trim(),
        actor: acting.actor,
      }),
    ),
  )

  on('declare', async (screen, id) => {
    const reference = screen.field('reference')
    const values = { refundId: id, reference }
    return await screen.actWith(await screen.touch(), 'refund.declare', values, async (acting) => {
      await requireVouching(screen, acting, id)
      return await declareRefund(acting.ctx, screen.storeId, acting.actor, id, reference.trim())
    })
  })

  on('confirm', async (screen, id) => {
    const { storeId } = screen
    const [address, code] = [screen.field('address'), screen.field('code')]
    const judged = await judgeNamed(screen.ctx, storeId, id)
    const values = { refundId: id, address, code }
    return await screen.actWith(await screen.touch(), 'refund.confirm', values, async (acting) => {
      await requireVouching(screen, acting, id)
      // The passkey confirmed the address that was shown, so it must still be the named one.
      const { addressRequest } = await readRefund(acting.ctx, storeId, id)
      if (addressRequest?.address !== address)
        throw new Problem('address_request_closed', 'Another address was named.')
      return await confirmAddress(acting.ctx, storeId, id, { judged, code, actor: acting.actor }, ctx.now())
    })
  })

  /** A link alone moves no money: confirming the address that is named with it takes a touch. */
  post(`${path}/:refundId/address-request`, writing, async (screen) => {
    const id = idOf(screen)
    const { refunds: texts } = screen.texts
    try {
      const { url, expiresAt } = await screen.act((acting) =>
        createAddressRequest(acting.ctx, screen.storeId, acting.actor, id),
      )
      const until = fill(texts.linkUntil, { time: showExactTime(screen.locale, new Date(expiresAt)) })
      return await sendSecret(screen, {
        title: texts.linkMade,
        about: html`${texts.linkAbout} ${until}`,
        secret: url,
        copy: texts.copyLink,
        back: { href: pathOf(screen, { id }), text: texts.back },
      })
    } catch (error) {
      return await refuse(screen, error)
    }
  })
}

/**
 * For the script: hands out the data to sign, and takes the signature. Neither needs a touch: money moves only with the
 * wallet's key, and only to the refund's recipient.
 */
function mountSigning({ post }: StoreRoutes, _ctx: Context, rails: Rails): void {
  const on = (act: string, work: (screen: Screen, id: string) => Promise<unknown>) =>
    post(`${path}/:refundId/${act}`, writing, (screen) => {
      return inWords(screen.texts.refunds.problems, async () => {
        const id = idOf(screen)
        // Checks the right again: a role that was taken away counts at once.
        await screen.act(async () => {})
        return await work(screen, id)
      })
    })

  on('prepare', (screen, id) => prepareRefund(screen.ctx, rails, screen.storeId, id))

  on('signature', async (screen, id) => {
    const [signature, transaction] = [screen.field('signature'), screen.field('transaction')]
    const given = transaction === '' ? { signature } : { transaction }
    await signRefund(screen.ctx, rails, screen.storeId, id, given)
    return { to: pathOf(screen, { id }) }
  })
}

function idOf({ part }: Screen): string {
  const id = part('refundId')
  if (!isId('rf', id)) throw new Refusal('not_found')
  return id
}

/**
 * Whether a member may name the recipient of a refund, or declare it paid by means that cannot be checked. A manager may
 * do so only for refunds that they requested: those are within the limit that owners set.
 */
function mayVouch(role: Role, memberId: string, { actor }: { readonly actor: Actor }): boolean {
  return role === 'owner' || actor.id === memberId
}

async function requireVouching(screen: Screen, { ctx, actor, role }: Acting, id: string): Promise<void> {
  const refund = await findRefund(ctx.db, screen.storeId, id)
  if (refund && !mayVouch(role, actor.id, refund))
    throw new Refusal('role', { detail: screen.texts.refunds.notTheirs })
}

/** Shows the changed refund, or the reason why nothing changed. */
async function answer(
  screen: Screen,
  work: (screen: Screen, id: string) => Promise<unknown>,
): Promise<FastifyReply> {
  const id = idOf(screen)
  try {
    await work(screen, id)
  } catch (error) {
    return await refuse(screen, error)
  }
  return screen.go(`/refunds/${id}`)
}

async function refuse(screen: Screen, error: unknown): Promise<FastifyReply> {
  const isRole = error instanceof Refusal && error.reason === 'role'
  const problem = isRole ? (error.detail ?? null) : sentenceFor(error, screen.texts.refunds.problems)
  if (problem !== null) return await sendOne(screen, problem)
  if (error instanceof Problem && error.code === 'not_found') throw new Refusal('not_found')
  throw error
}

/** The screen of the refund in the path. */
async function sendOne(screen: Screen, problem: string | null): Promise<FastifyReply> {
  const { storeId, store, session } = screen
  const refund = await findRefund(screen.ctx.db, storeId, idOf(screen))
  if (!refund) throw new Refusal('not_found')
  const wire = toWire(refund)
  const one: One = { refund, wire, problem, mayVouch: mayVouch(store.role, session.member.id, refund) }
  const line = renderApiLine(screen, { path: `/refunds/${wire.id}` })
  return screen.send({
    ...(problem !== null && { status: 409 }),
    screen: 'refunds',
    title: `${screen.texts.refunds.id} ${wire.orderId ?? wire.id}`,
    isLive: problem === null,
    main: html`${renderOne(screen, one)}${line}`,
  })
}
