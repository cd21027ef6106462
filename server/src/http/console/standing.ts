import type { Store } from '../../stores/store.ts'
import { fill, type Html, html } from '../page/html.ts'
import type { Screen } from './screen.ts'

/** Why the store takes no payments, and what its members can do about it; null if it does. */
export function renderStanding(
  { base, texts, may }: Screen,
  { standing, suspendedReason }: Pick<Store, 'standing' | 'suspendedReason'>,
): Html | null {
  if (standing === 'approved') return null
  const { title, text, prove } = texts.standing
  const reason = html`<bdi>${suspendedReason ?? ''}</bdi>`
  const act =
    standing === 'unproven' &&
    may('wallets:write') &&
    html`<p><a class="button" href="${base}/wallets">${prove}</a></p>`
  const said = html`<strong>${title[standing]}</strong> ${fill(text[standing], { reason })}`
  return html`<div class="note" role="status"><p>${said}</p>${act}</div>`
}
