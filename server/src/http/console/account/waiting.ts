import type { FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { listWaiting, type WaitingPasskey } from '../../../members/recovery-codes.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { localeOf, showMinute } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { sessionOf } from '../visitor.ts'

/** Passkeys made with recovery codes that confirm nothing yet, on every screen of whoever can refuse them. */
export async function renderWaiting(
  ctx: Context,
  request: FastifyRequest,
  field: Html,
): Promise<Html | null> {
  const session = sessionOf(request)
  const waiting = await listWaiting(ctx.db, session)
  const isHere = waiting.some((each) => each.isHere)
  const notes = waiting.map((each) => {
    if (each.memberId !== session.member.id) return renderOther(request, each)
    if (each.isHere) return renderHere(request, each)
    // The session that a waiting passkey opened cannot refuse another one.
    return isHere ? null : renderOwn(request, each, field)
  })
  return notes.length === 0 ? null : html`${notes}`
}

function timesOf(request: FastifyRequest, { createdAt, waitsUntil }: WaitingPasskey) {
  const locale = localeOf(request)
  return { made: showMinute(locale, createdAt), time: showMinute(locale, waitsUntil) }
}

function renderOwn(request: FastifyRequest, passkey: WaitingPasskey, field: Html): Html {
  const texts = textsOf(request).waiting
  return renderNote(
    texts.own,
    fill(texts.ownAbout, timesOf(request, passkey)),
    html`<form method="post" action="/codes/refuse">${field}<button>${texts.refuse}</button></form>
<a class="button quiet" href="/account">${texts.account}</a>`,
  )
}

function renderHere(request: FastifyRequest, passkey: WaitingPasskey): Html {
  const texts = textsOf(request).waiting
  return renderNote(
    texts.here,
    fill(texts.hereAbout, timesOf(request, passkey)),
    html`<a class="button quiet" href="/account">${texts.account}</a>`,
  )
}

function renderOther(request: FastifyRequest, passkey: WaitingPasskey): Html {
  const { waiting: texts, team, frame } = textsOf(request)
  const name = html`<bdi>${passkey.memberName}</bdi>`
  const names = { name, lost: team.lostPasskey, remove: team.remove, team: frame.screens.team }
  return renderNote(
    fill(texts.other, { name }),
    fill(texts.otherAbout, { ...timesOf(request, passkey), ...names }),
    html`<a class="button" href="/stores/${passkey.storeId}/members">${frame.screens.team}</a>`,
  )
}

function renderNote(title: Html | string, about: Html, buttons: Html): Html {
  return html`<div class="note" role="status"><p><strong>${title}</strong></p><p>${about}</p>
<div class="buttons">${buttons}</div></div>`
}
