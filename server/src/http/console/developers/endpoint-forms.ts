import type { EventType, WebhookEndpoint } from '@farthing/sdk'
import { eventTypes } from '../../api/event-types.ts'
import { type Html, html } from '../../page/html.ts'
import { renderSelect } from '../parts.ts'
import type { Screen } from '../screen.ts'

/** One box per type, so that the form works without a script and the passkey confirms each choice. */
const boxOf = (type: EventType) => `type.${type}`

export type EndpointForm = {
  readonly url: string
  readonly types: EventType[]
  readonly ordered: boolean
}

/** What the form sent, as it was sent (which is what the passkey has confirmed), and what it means. */
export function readEndpointForm(fields: Readonly<Record<string, unknown>>): {
  readonly values: Readonly<Record<string, string>>
  readonly form: EndpointForm
} {
  const names = ['url', 'ordered', ...eventTypes.map(boxOf)]
  const sent = names.flatMap((name) => {
    const value = fields[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  const values = Object.fromEntries(sent)
  return {
    values,
    form: {
      url: values.url ?? '',
      types: eventTypes.filter((type) => boxOf(type) in values),
      ordered: 'ordered' in values,
    },
  }
}

/** The fields of an endpoint that is made or changed. */
export function renderEndpointFields(
  { texts: { developers: texts } }: Screen,
  endpoint: Pick<WebhookEndpoint, 'url' | 'types' | 'ordered'>,
): Html {
  const { url, types, ordered } = endpoint
  const kinds = [...new Set(eventTypes.map(kindOf))]
  const box = (type: EventType) =>
    html`<label class="check"><input type="checkbox" name="${boxOf(type)}" value="yes"${
      types.includes(type) && html` checked`
    }><code>${type}</code></label>`
  return html`<label>${texts.url}<input name="url" type="url" required maxlength="2048" value="${
    url
  }" placeholder="https://shop.example/webhooks" autocomplete="off"><small>${texts.urlAbout}</small></label>
<fieldset><legend>${texts.types}. ${texts.typesAbout}</legend>${kinds.map((kind) => {
    const own = eventTypes.filter((type) => kindOf(type) === kind)
    const chosen = own.filter((type) => types.includes(type)).length
    return html`<details id="types-${kind}"${chosen > 0 && html` open`}><summary><code>${kind}</code> ${
      chosen > 0 && html`<span class="chip">${chosen}</span>`
    }</summary><div class="stack">${own.map(box)}</div></details>`
  })}</fieldset>
<label class="check"><input type="checkbox" name="ordered" value="yes"${ordered && html` checked`}>${
    texts.ordered
  }</label>`
}

function kindOf(type: EventType): string {
  return type.slice(0, type.indexOf('.'))
}

/** Everything else that can be done with an endpoint. */
export function renderEndpointActs(screen: Screen, endpoint: WebhookEndpoint): Html {
  const { base, storeFields: form } = screen
  const texts = screen.texts.developers
  const { id, status } = endpoint
  const fields = html`${form}<input type="hidden" name="endpointId" value="${id}">`
  const next = status === 'enabled' ? 'disabled' : 'enabled'
  const overlaps = (['86400', '3600', '0'] as const).map((each) => [each, texts.overlaps[each]] as const)
  return html`<section class="pane"><h2>${texts.secret}</h2><p class="soft">${texts.secretAbout}</p>
<form method="post" action="${base}/developers/endpoints/roll" data-confirm="webhook.roll" class="fields">${fields}
<label>${texts.overlap}${renderSelect('overlapSeconds', texts.overlap, '86400', overlaps)}</label>
<div><button class="quiet">${texts.roll}</button></div></form></section>
<section class="pane"><ul class="things">
<li><p>${status === 'enabled' ? texts.disable : texts.enable}<small>${
    status === 'enabled' ? texts.disableAbout : texts.enableAbout
  }</small></p>
<form method="post" action="${base}/developers/endpoints/switch" data-confirm="webhook.switch">${fields}
<input type="hidden" name="status" value="${next}">
<button class="quiet">${status === 'enabled' ? texts.disable : texts.enable}</button></form></li>
<li><p>${texts.remove}<small>${texts.removeAbout}</small></p>
<form method="post" action="${base}/developers/endpoints/delete" data-confirm="webhook.delete">${fields}
<button class="quiet">${texts.remove}</button></form></li>
</ul></section>`
}

export const resendHours = ['1', '6', '24', '72', '168', '720'] as const

export function renderResend(
  { base, storeFields: form, texts: { developers: texts } }: Screen,
  endpointId: string,
): Html {
  const hours = resendHours.map((each) => [each, texts.hours[each]] as const)
  const includes = (['undelivered', 'all'] as const).map((each) => [each, texts.includes[each]] as const)
  return html`<section class="pane"><h2>${texts.resendAll}</h2><p class="soft">${texts.resendAllAbout}</p>
<form method="post" action="${base}/developers/endpoints/resend" class="find">${form}
<input type="hidden" name="endpointId" value="${endpointId}">
${renderSelect('hours', texts.since, '24', hours)}${renderSelect('include', texts.include, 'undelivered', includes)}
<button class="quiet">${texts.resend}</button></form></section>`
}
