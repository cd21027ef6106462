import type { WebhookEndpoint } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import type { Context } from '../../../../context.ts'
import { eventToWire } from '../../../../events/read.ts'
import { readEvent } from '../../../../events/rows.ts'
import { readDelivery, redeliver, redeliverSince } from '../../../../events/webhooks/deliveries.ts'
import {
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  readEndpoint,
  rollSecret,
  testEndpoint,
  updateEndpoint,
} from '../../../../events/webhooks/endpoints.ts'
import { readRecent } from '../../../../events/webhooks/recent.ts'
import { isId } from '../../../../ids.ts'
import type { Acting } from '../../../../members/act.ts'
import type { Action } from '../../../../members/confirm.ts'
import { Refusal } from '../../../../members/refusal.ts'
import { eventTypes } from '../../../api/event-types.ts'
import { checkUrl } from '../../../api/webhooks.ts'
import { fieldsOf } from '../../fields.ts'
import { sendSecret } from '../../parts.ts'
import { inWords, type Screen, type StoreRoutes, withQuery } from '../../screen.ts'
import { backOf } from '../tabs.ts'
import {
  boxOf,
  deliveriesPerPage,
  endpointsMax,
  formats,
  renderDelivery,
  renderDeliveryList,
  renderEndpoint,
  renderNewEndpoint,
  renderResent,
  resendHours,
  states,
} from './view.ts'

const path = '/developers/endpoints'
const deliveriesPath = '/developers/deliveries'
const read = 'developers:read'
const write = 'webhooks:write'
const resend = 'webhooks:resend'
const hourMs = 3_600_000

/** Where a store's events go, and whether they arrive. */
export function mountWebhooks(store: StoreRoutes, ctx: Context): void {
  store.get(`${path}/new`, write, (screen) => {
    const title = screen.texts.developers.addEndpoint
    return screen.send({ screen: 'developers', title, main: renderNewEndpoint(screen) })
  })

  store.get(`${path}/:endpointId`, read, async (screen) => {
    const endpoint = await readOwn(screen, () =>
      readEndpoint(screen.ctx, screen.storeId, screen.part('endpointId')),
    )
    const title = screen.texts.developers.endpoint
    return screen.send({ screen: 'developers', title, main: renderEndpoint(screen, endpoint) })
  })

  store.post(`${path}/test`, write, async (screen) => {
    const { storeId } = screen
    const endpointId = screen.field('endpointId')
    await readOwn(screen, () =>
      screen.act((acting) => testEndpoint(acting.ctx, { storeId, endpointId }, acting.actor, ctx.now())),
    )
    ctx.db.wakeUps.send('events')
    return screen.go(withQuery('/developers/deliveries', { endpoint: endpointId }))
  })

  mountChanges(store, ctx)
  mountDeliveries(store, ctx)
}

/** Each of them decides where events go or who can sign, and takes a touch. */
function mountChanges({ post }: StoreRoutes, ctx: Context): void {
  post(path, write, async (screen) => {
    const { storeId } = screen
    const { values, form } = readForm(screen)
    const { id, secret } = await touched(screen, 'webhook.create', values, (acting) => {
      checkUrl(ctx, screen.store.mode, form.url)
      return createEndpoint(acting.ctx, storeId, acting.actor, form, ctx.now())
    })
    return secret === '' ? screen.go(`/developers/endpoints/${id}`) : showSecret(screen, secret)
  })

  post(`${path}/update`, write, async (screen) => {
    const { storeId } = screen
    const endpointId = screen.field('endpointId')
    const { values, form } = readForm(screen)
    await touched(screen, 'webhook.update', { endpointId, ...values }, (acting) => {
      const { format: _, url, ...others } = form
      // An empty field keeps a URL that is not shown.
      if (url !== '') checkUrl(ctx, screen.store.mode, url)
      const change = url === '' ? others : { url, ...others }
      return updateEndpoint(acting.ctx, { storeId, endpointId }, acting.actor, change, ctx.now())
    })
    return screen.go(`/developers/endpoints/${endpointId}`)
  })

  post(`${path}/switch`, write, async (screen) => {
    const [endpointId, status] = [screen.field('endpointId'), screen.field('status')]
    if (status !== 'enabled' && status !== 'disabled') throw new Refusal('invalid')
    await touched(screen, 'webhook.switch', { endpointId, status }, (acting) =>
      updateEndpoint(
        acting.ctx,
        { storeId: screen.storeId, endpointId },
        acting.actor,
        { status },
        ctx.now(),
      ),
    )
    return screen.go(`/developers/endpoints/${endpointId}`)
  })

  post(`${path}/delete`, write, async (screen) => {
    const endpointId = screen.field('endpointId')
    await touched(screen, 'webhook.delete', { endpointId }, (acting) =>
      deleteEndpoint(acting.ctx, { storeId: screen.storeId, endpointId }, acting.actor, ctx.now()),
    )
    return screen.go('/developers')
  })

  post(`${path}/roll`, write, async (screen) => {
    const [endpointId, overlapSeconds] = [screen.field('endpointId'), screen.field('overlapSeconds')]
    if (!(overlapSeconds in screen.texts.developers.overlaps)) throw new Refusal('invalid')
    const seconds = Number.parseInt(overlapSeconds, 10)
    const { secret } = await touched(screen, 'webhook.roll', { endpointId, overlapSeconds }, (acting) =>
      rollSecret(acting.ctx, { storeId: screen.storeId, endpointId }, acting.actor, seconds, ctx.now()),
    )
    return showSecret(screen, secret)
  })
}

/** Runs a verb by the touch that came with the request, which has to be for exactly these values. */
async function touched<Result>(
  screen: Screen,
  action: Action,
  values: Readonly<Record<string, string>>,
  work: (acting: Acting) => Promise<Result>,
): Promise<Result> {
  const touch = await screen.touch()
  return await readOwn(screen, () => screen.actWith(touch, action, values, work))
}

/** An endpoint or a delivery of the store; its problems in words. */
function readOwn<Result>({ texts }: Screen, work: () => Promise<Result>): Promise<Result> {
  return inWords(texts.developers.problems, work)
}

/** The form's values exactly as they were sent, which is what the passkey confirmed, and what they mean. */
function readForm({ request }: Screen) {
  const fields = fieldsOf(request)
  const names = ['url', 'format', 'ordered', ...eventTypes.map(boxOf)]
  const sent = names.flatMap((name) => {
    const value = fields[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  const values: Readonly<Record<string, string>> = Object.fromEntries(sent)
  const types = eventTypes.filter((type) => boxOf(type) in values)
  const format = formats.find((each) => each === values.format) ?? 'json'
  return { values, form: { url: values.url ?? '', format, types, ordered: 'ordered' in values } }
}

function showSecret(screen: Screen, secret: string): Promise<FastifyReply> {
  const { secretMade: title, secretMadeAbout: about, copySecret: copy } = screen.texts.developers
  return sendSecret(screen, { title, about, copy, secret, back: backOf(screen) })
}

/** Every request to an endpoint with its answers, and sending it again. */
function mountDeliveries({ get, post }: StoreRoutes, ctx: Context): void {
  get(deliveriesPath, read, async (screen) => {
    const endpoints = await listAll(screen)
    const endpoint = endpoints.find(({ id }) => id === screen.asked('endpoint'))?.id ?? ''
    const state = states.find((each) => each === screen.asked('state')) ?? ''
    const type = eventTypes.find((each) => each === screen.asked('type')) ?? ''
    const before = isId('evt', screen.asked('before')) ? screen.asked('before') : null
    const ids = endpoint === '' ? endpoints.map(({ id }) => id) : [endpoint]
    const { deliveries, next } = await readRecent(screen.ctx, screen.storeId, ids, {
      ...{ state: state || null, type: type || null, before, limit: deliveriesPerPage },
    })
    const filter = { endpoint, state, type }
    return screen.send({
      screen: 'developers',
      title: screen.texts.developers.deliveries,
      isLive: before === null,
      main: renderDeliveryList(screen, { filter, before, next, ids, endpoints, deliveries }),
    })
  })

  get(`${deliveriesPath}/:deliveryId`, read, async (screen) => {
    const { ctx: mine, storeId } = screen
    const delivery = await readOwn(screen, () => readDelivery(mine, storeId, screen.part('deliveryId')))
    const [row, endpoints] = await Promise.all([
      readEvent(mine.db, storeId, delivery.eventId),
      listAll(screen),
    ])
    if (!row) throw new Refusal('not_found')
    const endpoint = endpoints.find(({ id }) => id === delivery.endpointId) ?? null
    return screen.send({
      screen: 'developers',
      title: screen.texts.developers.delivery,
      isLive: true,
      main: renderDelivery(screen, { delivery, event: eventToWire(row), endpoint }),
    })
  })

  post(`${deliveriesPath}/resend`, resend, async (screen) => {
    const deliveryId = screen.field('deliveryId')
    await readOwn(screen, () => screen.act((acting) => redeliver(acting.ctx, screen.storeId, deliveryId)))
    return screen.go(`/developers/deliveries/${deliveryId}`)
  })

  post(`${path}/resend`, resend, async (screen) => {
    const endpointId = screen.field('endpointId')
    const [hours, after] = [screen.field('hours'), screen.field('after')]
    const include = screen.field('include') === 'all' ? 'all' : 'undelivered'
    if (after === '' && !resendHours.some((each) => each === hours)) throw new Refusal('invalid')
    const since = after === '' ? new Date(ctx.now().getTime() - Number.parseInt(hours, 10) * hourMs) : null
    const wanted = { after: after || null, since, include } as const
    const resent = await readOwn(screen, () =>
      screen.act((acting) => redeliverSince(acting.ctx, screen.storeId, endpointId, wanted)),
    )
    return screen.send({
      title: screen.texts.developers.resendAll,
      isAlone: true,
      main: renderResent(screen, { endpointId, include, ...resent }),
    })
  })
}

async function listAll({ ctx, storeId }: Screen): Promise<WebhookEndpoint[]> {
  return (await listEndpoints(ctx, storeId, { cursor: null, limit: endpointsMax })).data
}
