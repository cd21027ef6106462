import type { WebhookEndpoint } from '@farthing/sdk'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
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
import { actAs, actWithTouch } from '../../../members/act.ts'
import { type Action, readTouch } from '../../../members/confirm.ts'
import { Refusal } from '../../../members/refusal.ts'
import { checkUrl } from '../../api/webhooks.ts'
import { fill, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, textOf, touchOf } from '../fields.ts'
import { showCount } from '../formats.ts'
import { renderApiLine } from '../frame/api-line.ts'
import { sessionOf } from '../visitor.ts'
import {
  readEndpointForm,
  renderEndpointActs,
  renderEndpointFields,
  renderResend,
  resendHours,
} from './endpoint-forms.ts'
import { renderEndpointState } from './endpoint-list.ts'
import { sendSecret } from './made.ts'
import { inWords, openScreen, renderSubhead, type Screen, showUrl, withQuery } from './screen.ts'

const path = '/stores/:storeId/developers/endpoints'
const read = { config: { right: 'developers:read' } } as const
const write = { config: { right: 'webhooks:write' } } as const
const resend = { config: { right: 'webhooks:resend' } } as const
const hourMs = 3_600_000

/** A store's webhook endpoints. Whatever decides where events go or who can sign takes a touch. */
export function mountEndpoints(scope: FastifyInstance, ctx: Context): void {
  scope.get(`${path}/new`, write, (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { texts, base, form } = screen
    const blank = { url: '', types: [], ordered: false }
    return sendPage(ctx, request, reply, {
      screen: 'developers',
      title: texts.addEndpoint,
      main: html`${renderSubhead(screen, texts.addEndpoint, base)}
<section class="pane"><form method="post" action="${base}/endpoints" data-confirm="webhook.create" class="fields">${form}
${renderEndpointFields(screen, blank)}
<div class="buttons"><button>${texts.add}</button><a class="button quiet" href="${base}">${texts.cancel}</a></div></form></section>
${renderApiLine(request, ctx.config.baseUrl, {
  method: 'POST',
  path: '/webhook-endpoints',
  body: { url: 'https://shop.example/webhooks', types: ['checkout.completed'] },
})}`,
    })
  })

  scope.get(`${path}/:endpointId`, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const endpoint = await readOne(screen, (request.params as { endpointId: string }).endpointId)
    return sendEndpoint(screen, endpoint)
  })

  scope.post(path, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { values, form } = readEndpointForm(fieldsOf(request))
    const { secret } = await touched(ctx, screen, 'webhook.create', values, (inner, actor) => {
      checkUrl(ctx, screen.store.mode, form.url)
      return createEndpoint(inner, screen.store.storeId, actor, form, ctx.now())
    })
    return showSecret(screen, secret)
  })

  scope.post(`${path}/update`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { endpointId } = idOf(request)
    const { values, form } = readEndpointForm(fieldsOf(request))
    await touched(ctx, screen, 'webhook.update', { endpointId, ...values }, (inner, actor) => {
      checkUrl(ctx, screen.store.mode, form.url)
      return updateEndpoint(inner, screen.store.storeId, actor, endpointId, form, ctx.now())
    })
    return go(reply, `${screen.base}/endpoints/${endpointId}`)
  })

  scope.post(`${path}/switch`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { endpointId } = idOf(request)
    const status = textOf(fieldsOf(request), 'status')
    if (status !== 'enabled' && status !== 'disabled') throw new Refusal('invalid')
    await touched(ctx, screen, 'webhook.switch', { endpointId, status }, (inner, actor) =>
      updateEndpoint(inner, screen.store.storeId, actor, endpointId, { status }, ctx.now()),
    )
    return go(reply, `${screen.base}/endpoints/${endpointId}`)
  })

  scope.post(`${path}/delete`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { endpointId } = idOf(request)
    await touched(ctx, screen, 'webhook.delete', { endpointId }, (inner, actor) =>
      deleteEndpoint(inner, screen.store.storeId, actor, endpointId, ctx.now()),
    )
    return go(reply, screen.base)
  })

  scope.post(`${path}/roll`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { endpointId } = idOf(request)
    const overlapSeconds = textOf(fieldsOf(request), 'overlapSeconds')
    if (!(overlapSeconds in screen.texts.overlaps)) throw new Refusal('invalid')
    const values = { endpointId, overlapSeconds }
    const seconds = Number.parseInt(overlapSeconds, 10)
    const { secret } = await touched(ctx, screen, 'webhook.roll', values, (inner, actor) =>
      rollSecret(inner, screen.store.storeId, actor, endpointId, seconds, ctx.now()),
    )
    return showSecret(screen, secret)
  })

  scope.post(`${path}/test`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { endpointId } = idOf(request)
    const { storeId } = screen.store
    await inWords(request, () =>
      actAs(screen.ctx, storeId, sessionOf(request), 'webhooks:write', (acting) =>
        testEndpoint(acting.ctx, storeId, acting.actor, endpointId, ctx.now()),
      ),
    )
    ctx.db.wakeUps.send('events')
    return go(reply, withQuery(`${screen.base}/deliveries`, { endpoint: endpointId }))
  })

  scope.post(`${path}/resend`, resend, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { endpointId } = idOf(request)
    const fields = fieldsOf(request)
    const [hours, after] = [textOf(fields, 'hours'), textOf(fields, 'after')]
    const include = textOf(fields, 'include') === 'all' ? 'all' : 'undelivered'
    if (after === '' && !resendHours.some((each) => each === hours)) throw new Refusal('invalid')
    const since = after === '' ? new Date(ctx.now().getTime() - Number.parseInt(hours, 10) * hourMs) : null
    const { storeId } = screen.store
    const { count, cursor, hasMore } = await inWords(request, () =>
      actAs(screen.ctx, storeId, sessionOf(request), 'webhooks:resend', (acting) =>
        redeliverSince(acting.ctx, storeId, endpointId, { after: after || null, since, include }),
      ),
    )
    const { texts, form, base } = screen
    const title =
      count === 0 ? texts.onTheWayNone : fill(texts.onTheWay, { count: showCount(screen.reader, count) })
    return sendPage(ctx, request, reply, {
      title: texts.resendAll,
      isAlone: true,
      main: html`<h1>${title}</h1>
${
  hasMore &&
  html`<p>${texts.moreToSend}</p><form method="post" action="${base}/endpoints/resend">${form}<input type="hidden" name="endpointId" value="${endpointId}"><input type="hidden" name="include" value="${include}"><input type="hidden" name="after" value="${cursor}"><button>${texts.goOn}</button></form>`
}
<p><a href="${withQuery(`${base}/deliveries`, { endpoint: endpointId })}">${texts.seeDeliveries}</a></p>`,
    })
  })
}

/** Runs a verb by the touch that came with the request, which has to be for exactly these values. */
async function touched<Result>(
  ctx: Context,
  { ctx: scoped, request, store: { storeId } }: Screen,
  action: Action,
  values: Readonly<Record<string, string>>,
  work: (inner: Context, actor: Parameters<typeof createEndpoint>[2]) => Promise<Result>,
): Promise<Result> {
  const touch = await readTouch(ctx, sessionOf(request), touchOf(fieldsOf(request)))
  return await inWords(request, () =>
    actWithTouch(scoped, storeId, touch, 'webhooks:write', { action, values }, ctx.now(), (acting) =>
      work(acting.ctx, acting.actor),
    ),
  )
}

function idOf(request: FastifyRequest): { readonly endpointId: string } {
  return { endpointId: textOf(fieldsOf(request), 'endpointId') }
}

function go(reply: FastifyReply, location: string): FastifyReply {
  return reply.code(303).header('location', location).send()
}

async function readOne(screen: Screen, endpointId: string): Promise<WebhookEndpoint> {
  return await inWords(screen.request, () => readEndpoint(screen.ctx, screen.store.storeId, endpointId))
}

function showSecret(screen: Screen, secret: string): Promise<FastifyReply> {
  const { secretMade: title, secretMadeAbout: about, copySecret: copy } = screen.texts
  return sendSecret(screen, { title, about, copy, secret })
}

function sendEndpoint(screen: Screen, endpoint: WebhookEndpoint): Promise<FastifyReply> {
  const { ctx, request, reply, texts, base, form, may } = screen
  const { id, status } = endpoint
  return sendPage(ctx, request, reply, {
    screen: 'developers',
    title: texts.endpoint,
    main: html`${renderSubhead(screen, showUrl(endpoint.url), base)}
<section class="pane"><div class="row apart"><p>${renderEndpointState(screen, endpoint)}</p><div class="row">
${may.webhooks && status === 'enabled' && html`<form method="post" action="${base}/endpoints/test">${form}<input type="hidden" name="endpointId" value="${id}"><button class="quiet tiny">${texts.sendTest}</button></form>`}
<a class="button quiet tiny" href="${withQuery(`${base}/deliveries`, { endpoint: id })}">${texts.seeDeliveries}</a></div></div></section>
${
  may.webhooks
    ? html`<section class="pane"><form method="post" action="${base}/endpoints/update" data-confirm="webhook.update" class="fields">${form}<input type="hidden" name="endpointId" value="${id}">
${renderEndpointFields(screen, endpoint)}
<div><button>${texts.save}</button></div></form></section>`
    : html`<section class="pane"><dl class="list"><div><dt>${texts.url}</dt><dd>${endpoint.url}</dd></div><div><dt>${texts.types}</dt><dd>${endpoint.types.join(', ') || texts.everyEvent}</dd></div></dl></section>`
}
${may.resend && status === 'enabled' && renderResend(screen, id)}
${may.webhooks && renderEndpointActs(screen, endpoint)}
${renderApiLine(request, ctx.config.baseUrl, { path: `/webhook-endpoints/${id}` })}`,
  })
}
