import type { WebhookEndpoint } from '@farthing/sdk'
import type { Backlog } from '../../../events/webhooks/recent-rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showCount } from '../formats.ts'
import type { Screen } from '../screen.ts'
import { at, showUrl } from './parts.ts'

/** Waiting events are counted up to here: beyond it the number says nothing that "more" would not. */
export const waitingMax = 1_000

export function renderEndpointState(
  screen: Screen,
  { status, failingSince, disabledReason }: WebhookEndpoint,
): Html {
  const texts = screen.texts.developers
  if (status === 'disabled')
    return html`<span class="chip">${texts.disabledChip}</span>
<span class="soft">${texts.disabled[disabledReason ?? 'store']}</span>`
  if (failingSince === null) return html`<span class="chip good">${texts.delivering}</span>`
  return html`<span class="chip bad">${texts.failing}</span>
<span class="soft">${fill(texts.failingSince, { time: at(screen, failingSince) })}</span>`
}

export function renderEndpoints(
  screen: Screen,
  endpoints: readonly WebhookEndpoint[],
  backlogs: readonly Backlog[],
): Html {
  const texts = screen.texts.developers
  if (endpoints.length === 0) return html`<p class="empty">${texts.noEndpoints}</p>`
  return html`<ul class="things">${endpoints.map((endpoint) =>
    renderEndpoint(
      screen,
      endpoint,
      backlogs.find(({ endpointId }) => endpointId === endpoint.id),
    ),
  )}</ul>`
}

function renderEndpoint(screen: Screen, endpoint: WebhookEndpoint, backlog: Backlog | undefined): Html {
  const { base, storeFields: form, may } = screen
  const texts = screen.texts.developers
  const { id, url, types, ordered, status } = endpoint
  const parts = [
    types.length === 0
      ? html`${texts.everyEvent}`
      : types.length <= 3
        ? html`${types.join(', ')}`
        : fill(texts.someEvents, { count: `${types.length}` }),
    ...(ordered ? [html`${texts.inOrder}`] : []),
    ...describeBacklog(screen, endpoint, backlog),
  ]
  return html`<li><p><a href="${base}/developers/endpoints/${id}"><b>${showUrl(url)}</b></a><small>${parts.map(
    (part, i) => html`${i > 0 && ' · '}${part}`,
  )}</small></p>
<div class="acts">${renderEndpointState(screen, endpoint)}${
    may('webhooks:write') &&
    status === 'enabled' &&
    html`<form method="post" action="${base}/developers/endpoints/test">${form}
<input type="hidden" name="endpointId" value="${id}">
<button class="quiet tiny">${texts.sendTest}<span class="unseen"> ${url}</span></button></form>`
  }</div></li>`
}

function describeBacklog(
  screen: Screen,
  { failingSince }: WebhookEndpoint,
  backlog: Backlog | undefined,
): Html[] {
  if (!backlog || backlog.waiting === 0) return []
  const { locale, ctx } = screen
  const texts = screen.texts.developers
  const { waiting, nextTryAt, status, error } = backlog
  const count = showCount(locale, Math.min(waiting, waitingMax)) + (waiting > waitingMax ? '+' : '')
  const answer = status === null ? (error ?? texts.noAnswer) : `${status}`
  return [
    waiting === 1 ? html`${texts.waitingOne}` : fill(texts.waiting, { count }),
    ...(failingSince === null ? [] : [fill(texts.lastAnswer, { answer })]),
    ...(nextTryAt && nextTryAt > ctx.now() ? [fill(texts.nextTry, { time: at(screen, nextTryAt) })] : []),
  ]
}
