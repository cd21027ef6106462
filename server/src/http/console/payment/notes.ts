import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showTime, showTokens } from '../formats.ts'
import type { Screen } from '../screen.ts'

/** A note that could not be kept, and why. */
export type TypedNote = { readonly paymentId: string; readonly text: string; readonly isTooMany: boolean }

/** Hardly any checkout gets more payments than this. */
const notesMax = 5

/** The store's own note about each payment, for those who may to change it. */
export function renderNotes(
  screen: Screen,
  credits: readonly CreditRow[],
  typed: TypedNote | null,
): Html | null {
  const shown = credits.slice(0, notesMax)
  const notes = shown.map((credit) => renderNote(screen, credit, shown.length > 1, typed))
  if (notes.every((note) => note === null)) return null
  const { notes: texts } = screen.texts.payment
  const isWaiting = screen.asked('said') === 'waiting'
  return html`<h2>${texts.title}</h2>${isWaiting && html`<p class="note" role="status">${texts.waiting}</p>`}${notes}`
}

function renderNote(
  screen: Screen,
  credit: CreditRow,
  isOneOfSeveral: boolean,
  typed: TypedNote | null,
): Html | null {
  const { base, formFields, locale, now } = screen
  const { notes: texts } = screen.texts.payment
  const { paymentId } = credit
  const { note } = toPayment(credit)
  const mayWrite = screen.may('payments:write')
  if (!note && !mayWrite) return null
  const failed = typed?.paymentId === paymentId ? typed : null
  const amount = showTokens(locale, credit, credit.amount)
  const form =
    mayWrite &&
    html`<details id="note-${paymentId}"${failed && html` open`}><summary>${note ? texts.change : texts.add}</summary>
<form class="stack" method="post" action="${base}/payments/${paymentId}/note">${formFields}${
      failed && html`<p class="note" role="alert">${failed.isTooMany ? texts.tooMany : texts.wrong}</p>`
    }<label class="field">${texts.label}<textarea name="note" rows="3" maxlength="1000" autocomplete="off">${
      failed?.text ?? note?.text ?? ''
    }</textarea></label><p class="soft">${texts.about}</p>
<div class="buttons"><button class="quiet">${texts.save}</button></div></form></details>`
  const said =
    note &&
    html`<p class="words"><bdi>${note.text}</bdi><br><small class="soft">${fill(texts.by, {
      name: html`<bdi>${note.actor.name ?? note.actor.id}</bdi>`,
      time: showTime(locale, new Date(note.notedAt), now),
    })}</small></p>`
  const about = isOneOfSeveral && html`<p class="soft">${fill(texts.of, { amount })}</p>`
  return html`<div class="stack">${about}${said ?? null}${form}</div>`
}
