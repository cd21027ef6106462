import type { Actor, WebhookEndpoint } from '@farthing/sdk'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Context } from '../../../context.ts'
import { redeliverSince } from '../../../events/webhooks/deliveries.ts'
import {
  createEndpoint,
  deleteEndpoint,
  readEndpoint,
  rollSecret,
  testEndpoint,
  updateEndpoint,
} from '../../../events/webhooks/endpoints.ts'
import type { Action } from '../../../members/confirm.ts'
import { Refusal } from '../../../members/refusal.ts'
import { checkUrl } from '../../api/webhooks.ts'
import { fill, html } from '../../page/html.ts'
import { fieldsOf } from '../fields.ts'
import { showCount } from '../formats.ts'
import { renderApiLine, sendSecret } from '../parts.ts'
import { inWords, openScreen, type Screen, withQuery } from '../screen.ts'
import {
  readEndpointForm,
  renderEndpointActs,
  renderEndpointFields,
  renderResend,
  resendHours,
} from './endpoint-forms.ts'
import { renderEndpointState } from './endpoint-list.ts'
import { backOf, renderSubhead, showUrl } from './parts.ts'

const path = '/stores/:storeId/developers/endpoints'
const read = { config: { right: 'developers:read' } } as const
const write = { config: { right: 'webhooks:write' } } as const
const resend = { config: { right: 'webhooks:resend' } } as const
const hourMs = 3_600_000

/** A store's webhook endpoints. Whatever decides where events go or who can sign takes a touch. */
export function mountEndpoints(scope: FastifyInstance, ctx: Context): void {
  scope.get(`${path}/new`, write, (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { base, storeFields: form } = screen
    const texts = screen.texts.developers
    const blank = { url: '', types: [], ordered: false }
    return screen.send({
      screen: 'developers',
      title: texts.addEndpoint,
      main: html`${renderSubhead(texts.addEndpoint, backOf(screen))}
<section class="pane">
<form method="post" action="${base}/developers/endpoints" data-confirm="webhook.create" class="fields">${form}
${renderEndpointFields(screen, blank)}
<div class="buttons"><button>${texts.add}</button><a class="button quiet" href="${base}/developers">${
        texts.cancel
      }</a></div></form></section>
${renderApiLine(screen, {
  method: 'POST',
  path: '/webhook-endpoints',
  body: { url: 'https://shop.example/webhooks', types: ['checkout.completed'] },
})}`,
    })
  })

  scope.get(`${path}/:endpointId`, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpoint = await readOne(screen, screen.part('endpointId'))
    return sendEndpoint(screen, endpoint)
  })

  scope.post(path, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { values, form } = readEndpointForm(fieldsOf(request))
    const { secret } = await touched(screen, 'webhook.create', values, (inner, actor) => {
      checkUrl(ctx, screen.store.mode, form.url)
      return createEndpoint(inner, screen.storeId, actor, form, ctx.now())
    })
    return showSecret(screen, secret)
  })

  scope.post(`${path}/update`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpointId = screen.field('endpointId')
    const { values, form } = readEndpointForm(fieldsOf(request))
    await touched(screen, 'webhook.update', { endpointId, ...values }, (inner, actor) => {
      checkUrl(ctx, screen.store.mode, form.url)
      return updateEndpoint(inner, screen.storeId, actor, endpointId, form, ctx.now())
    })
    return screen.go(`/developers/endpoints/${endpointId}`)
  })

  scope.post(`${path}/switch`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpointId = screen.field('endpointId')
    const status = screen.field('status')
    if (status !== 'enabled' && status !== 'disabled') throw new Refusal('invalid')
    await touched(screen, 'webhook.switch', { endpointId, status }, (inner, actor) =>
      updateEndpoint(inner, screen.storeId, actor, endpointId, { status }, ctx.now()),
    )
    return screen.go(`/developers/endpoints/${endpointId}`)
  })

  scope.post(`${path}/delete`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpointId = screen.field('endpointId')
    await touched(screen, 'webhook.delete', { endpointId }, (inner, actor) =>
      deleteEndpoint(inner, screen.storeId, actor, endpointId, ctx.now()),
    )
    return screen.go('/developers')
  })

  scope.post(`${path}/roll`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpointId = screen.field('endpointId')
    const overlapSeconds = screen.field('overlapSeconds')
    if (!(overlapSeconds in screen.texts.developers.overlaps)) throw new Refusal('invalid')
    const values = { endpointId, overlapSeconds }
    const seconds = Number.parseInt(overlapSeconds, 10)
    const { secret } = await touched(screen, 'webhook.roll', values, (inner, actor) =>
      rollSecret(inner, screen.storeId, actor, endpointId, seconds, ctx.now()),
    )
    return showSecret(screen, secret)
  })

  scope.post(`${path}/test`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpointId = screen.field('endpointId')
    const { storeId } = screen
    await inWords(screen.texts.developers.problems, () =>
      screen.act((acting) => testEndpoint(acting.ctx, storeId, acting.actor, endpointId, ctx.now())),
    )
    ctx.db.wakeUps.send('events')
    return screen.go(withQuery('/developers/deliveries', { endpoint: endpointId }))
  })

  scope.post(`${path}/resend`, resend, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpointId = screen.field('endpointId')
    const [hours, after] = [screen.field('hours'), screen.field('after')]
    const include = screen.field('include') === 'all' ? 'all' : 'undelivered'
    if (after === '' && !resendHours.some((each) => each === hours)) throw new Refusal('invalid')
    const since = after === '' ? new Date(ctx.now().getTime() - Number.parseInt(hours, 10) * hourMs) : null
    const { storeId } = screen
    const { count, cursor, hasMore } = await inWords(screen.texts.developers.problems, () =>
      screen.act((acting) =>
        redeliverSince(acting.ctx, storeId, endpointId, { after: after || null, since, include }),
      ),
    )
    const { storeFields: form, base } = screen
    const texts = screen.texts.developers
    const title =
      count === 0 ? texts.onTheWayNone : fill(texts.onTheWay, { count: showCount(screen.locale, count) })
    return screen.send({
      title: texts.resendAll,
      isAlone: true,
      main: html`<h1>${title}</h1>
${
  hasMore &&
  html`<p>${texts.moreToSend}</p>
<form method="post" action="${base}/developers/endpoints/resend">${form}
<input type="hidden" name="endpointId" value="${endpointId}"><input type="hidden" name="include" value="${include}">
<input type="hidden" name="after" value="${cursor}"><button>${texts.goOn}</button></form>`
}
<p><a href="${withQuery(`${base}/developers/deliveries`, { endpoint: endpointId })}">${texts.seeDeliveries}</a></p>`,
    })
  })
}

/** Runs a verb by the touch that came with the request, which has to be for exactly these values. */
async function touched<Result>(
  screen: Screen,
  action: Action,
  values: Readonly<Record<string, string>>,
  work: (inner: Context, actor: Actor) => Promise<Result>,
): Promise<Result> {
  const touch = await screen.touch()
  return await inWords(screen.texts.developers.problems, () =>
    screen.actWith(touch, action, values, (acting) => work(acting.ctx, acting.actor)),
  )
}

async function readOne(screen: Screen, endpointId: string): Promise<WebhookEndpoint> {
  return await inWords(screen.texts.developers.problems, () =>
    readEndpoint(screen.ctx, screen.storeId, endpointId),
  )
}

function showSecret(screen: Screen, secret: string): Promise<FastifyReply> {
  const { secretMade: title, secretMadeAbout: about, copySecret: copy } = screen.texts.developers
  return sendSecret(screen, { title, about, copy, secret, back: backOf(screen) })
}

function sendEndpoint(screen: Screen, endpoint: WebhookEndpoint): Promise<FastifyReply> {
  const { base, storeFields: form, may } = screen
  const texts = screen.texts.developers
  const { id, status } = endpoint
  return screen.send({
    screen: 'developers',
    title: texts.endpoint,
    main: html`${renderSubhead(showUrl(endpoint.url), backOf(screen))}
<section class="pane"><div class="row apart"><p>${renderEndpointState(screen, endpoint)}</p><div class="row">
${
  may('webhooks:write') &&
  status === 'enabled' &&
  html`<form method="post" action="${base}/developers/endpoints/test">${form}
<input type="hidden" name="endpointId" value="${id}">
<button class="quiet tiny">${texts.sendTest}</button></form>`
}
<a class="button quiet tiny" href="${withQuery(`${base}/developers/deliveries`, { endpoint: id })}">${
      texts.seeDeliveries
    }</a></div></div></section>
${
  may('webhooks:write')
    ? html`<section class="pane">
<form method="post" action="${base}/developers/endpoints/update" data-confirm="webhook.update" class="fields">${form}
<input type="hidden" name="endpointId" value="${id}">
${renderEndpointFields(screen, endpoint)}
<div><button>${texts.save}</button></div></form></section>`
    : html`<section class="pane"><dl class="list"><div><dt>${texts.url}</dt><dd>${endpoint.url}</dd></div>
<div><dt>${texts.types}</dt><dd>${endpoint.types.join(', ') || texts.everyEvent}</dd></div></dl></section>`
}
${may('webhooks:resend') && status === 'enabled' && renderResend(screen, id)}
${may('webhooks:write') && renderEndpointActs(screen, endpoint)}
${renderApiLine(screen, { path: `/webhook-endpoints/${id}` })}`,
  })
}
