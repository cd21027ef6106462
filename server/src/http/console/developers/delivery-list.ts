import type { Delivery, DeliveryAttempt, WebhookEndpoint } from '@farthing/sdk'
import type { RecentDelivery } from '../../../events/webhooks/recent-rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showCount } from '../formats.ts'
import type { Screen } from '../screen.ts'
import { at, showUrl } from './parts.ts'

/** Deliveries in a table, each with its last answer and a way to send it again. */
export function renderDeliveries(
  screen: Screen,
  deliveries: readonly RecentDelivery[],
  endpoints: readonly WebhookEndpoint[],
): Html {
  const { base, storeFields: form, may } = screen
  const texts = screen.texts.developers
  const row = (delivery: RecentDelivery) => {
    const { id, type, endpointId, createdAt, state } = delivery
    const endpoint = endpoints.find((each) => each.id === endpointId)
    return html`<tr><td class="c1"><a href="${base}/developers/deliveries/${id}"><code>${type}</code></a></td>
<td class="soft">${endpoint ? showUrl(endpoint.url) : texts.deletedEndpoint}</td>
<td class="c3">${renderState(screen, state, delivery.tries > 0)} ${renderAnswer(screen, delivery)}</td>
<td class="c4 num soft">${at(screen, createdAt)}</td>
<td class="c2 num">${
      may('webhooks:resend') &&
      endpoint?.status === 'enabled' &&
      html`<form method="post" action="${base}/developers/deliveries/resend">${form}
<input type="hidden" name="deliveryId" value="${id}">
<button class="quiet tiny">${texts.resend}<span class="unseen"> ${type} ${id}</span></button></form>`
    }</td></tr>`
  }
  return html`<div class="table" role="region" aria-label="${texts.deliveries}" tabindex="0"><table class="cards">
<thead><tr><th scope="col">${texts.event}</th><th scope="col">${texts.endpoint}</th><th scope="col">${texts.answer}</th>
<th scope="col" class="num">${texts.time}</th>
<th scope="col"><span class="unseen">${texts.action}</span></th></tr></thead>
<tbody>${deliveries.map(row)}</tbody></table></div>`
}

/** One that waits after a try is failing. */
export function renderState(
  { texts: { developers: texts } }: Screen,
  state: Delivery['state'],
  isTried: boolean,
): Html {
  if (state === 'pending' && isTried) return html`<span class="chip bad">${texts.failing}</span>`
  const kind = { pending: 'busy', delivered: 'good', undeliverable: 'bad' }[state]
  return html`<span class="chip ${kind}">${texts.states[state]}</span>`
}

/** What the endpoint answered: its status, or why there is none. */
export function renderAnswer(
  { texts: { developers: texts }, locale }: Screen,
  {
    status,
    error,
    durationMs,
    tries,
  }: Pick<DeliveryAttempt, 'status' | 'error' | 'durationMs'> & { readonly tries?: number },
): Html {
  if (status === null && error === null) return html`<span class="soft">${texts.notTried}</span>`
  const what = status === null ? (error === 'interrupted' ? texts.interrupted : error) : `${status}`
  const count = tries !== undefined && tries > 1 && fill(texts.tries, { count: showCount(locale, tries) })
  const took = durationMs !== null && fill(texts.milliseconds, { count: showCount(locale, durationMs) })
  return html`<bdi>${what}</bdi> <span class="soft">${count || took}</span>`
}
