import type { CreateApiKey, KeyPreset, Scope } from '@farthing/sdk'
import type { Context } from '../../../context.ts'
import { eventToWire, lookBack } from '../../../events/read.ts'
import { readEvent, readLogEnd } from '../../../events/rows.ts'
import { listEndpoints } from '../../../events/webhooks/endpoints.ts'
import { listBacklogs, readRecent } from '../../../events/webhooks/recent.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { mayMakeKeys } from '../../../members/rights.ts'
import { findCheckoutOf } from '../../../payments/credits/store-payments.ts'
import { createKey, isKeyId, pageKeys, revokeKey } from '../../../stores/api-keys.ts'
import { presetNames, scopes, subjects } from '../../../stores/scopes.ts'
import { cutPage } from '../../route.ts'
import { sendSecret } from '../parts.ts'
import { inWords, type Screen, type StoreRoutes } from '../screen.ts'
import { backOf } from './tabs.ts'
import {
  eventsPerPage,
  keysPerPage,
  mayMake,
  renderEvent,
  renderEvents,
  renderIndex,
  renderNewKey,
  typeChoices,
} from './view.ts'
import { mountWebhooks } from './webhooks/routes.ts'
import { endpointsMax, waitingMax } from './webhooks/view.ts'

const path = '/developers'
const read = 'developers:read'
const write = 'keys:write'
const latestDeliveries = 5

/** What a developer needs to connect a shop: its keys, where its events go, and whether they arrive. */
export function mountDevelopers(store: StoreRoutes, ctx: Context): void {
  store.get(path, read, async (screen) => {
    const { storeId, ctx: mine } = screen
    const cursor = isKeyId(screen.asked('keys')) ? screen.asked('keys') : null
    const [found, { data: endpoints }, backlogs] = await Promise.all([
      pageKeys(mine.db, storeId, { cursor, limit: keysPerPage + 1 }),
      listEndpoints(mine, storeId, { cursor: null, limit: endpointsMax }),
      listBacklogs(mine.db, storeId, waitingMax + 1),
    ])
    const { data: keys, nextCursor: next } = cutPage(found, keysPerPage)
    const ids = endpoints.map(({ id }) => id)
    const { deliveries } = await readRecent(mine, storeId, ids, {
      ...{ state: null, type: null, before: null, limit: latestDeliveries },
    })
    return screen.send({
      screen: 'developers',
      title: screen.texts.developers.title,
      isLive: true,
      main: renderIndex(screen, { keys, cursor, next, endpoints, backlogs, deliveries }),
    })
  })

  mountKeys(store, ctx)
  mountWebhooks(store, ctx)
  mountEvents(store)
}

/** Making and revoking keys, each by a touch. */
function mountKeys({ get, post }: StoreRoutes, ctx: Context): void {
  get(`${path}/keys/new`, write, (screen) => {
    if (!mayMake(screen)) throw new Refusal('role')
    const title = screen.texts.developers.newKey
    return screen.send({ screen: 'developers', title, main: renderNewKey(screen) })
  })

  post(`${path}/keys`, write, async (screen) => {
    const { storeId, store, field } = screen
    const texts = screen.texts.developers
    const names = ['label', 'preset', 'addresses', ...subjects]
    const values = Object.fromEntries(names.map((name) => [name, field(name)]))
    const touch = await screen.touch()
    const { text } = await inWords(texts.problems, () =>
      screen.actWith(touch, 'key.create', values, async (acting) => {
        if (!mayMakeKeys(acting.role, store.mode)) throw new Refusal('role')
        const maker = { actor: acting.actor, limit: null }
        return await createKey(acting.ctx, storeId, maker, readKey(screen, values), ctx.now())
      }),
    )
    const { keyMade: title, keyMadeAbout: about, copyKey: copy } = texts
    return sendSecret(screen, { title, about, copy, secret: text, back: backOf(screen) })
  })

  post(`${path}/keys/revoke`, write, async (screen) => {
    const keyId = screen.field('keyId')
    const touch = await screen.touch()
    await inWords(screen.texts.developers.problems, () =>
      screen.actWith(touch, 'key.revoke', { keyId }, ({ ctx: mine, actor }) =>
        revokeKey(mine, screen.storeId, { actor, limit: null }, keyId, ctx.now()),
      ),
    )
    return screen.go('/developers')
  })
}

function readKey({ texts }: Screen, values: Readonly<Record<string, string>>): CreateApiKey {
  const { label = '', preset = '', addresses = '' } = values
  const listed = addresses.split(/[\s,]+/).filter((each) => each !== '')
  const input = { ...(label !== '' && { label }), ...(listed.length > 0 && { addresses: listed }) }
  if (presetNames.includes(preset as KeyPreset)) return { ...input, preset: preset as KeyPreset }
  if (preset !== 'scopes') throw new Refusal('invalid')
  const chosen = subjects
    .map((subject) => `${subject}:${values[subject]}`)
    .filter((each): each is Scope => scopes.includes(each as Scope))
  if (chosen.length === 0) throw new Refusal('invalid', { detail: texts.developers.noScopes })
  return { ...input, scopes: chosen }
}

/** The event log, newest first. */
function mountEvents({ get }: StoreRoutes): void {
  get(`${path}/events`, read, async (screen) => {
    const type = typeChoices.find((each) => each === screen.asked('type')) ?? ''
    const about = screen.asked('about')
    const checkoutId = await findCheckout(screen, about)
    const to = readNumber(screen.asked('to'))
    const wanted = { type: type || null, checkoutId, actor: null, isByActor: false }
    const isUnknown = checkoutId === null && about !== ''
    const looked = isUnknown
      ? null
      : await lookBack(screen.ctx, screen.storeId, wanted, { to, limit: eventsPerPage })
    return screen.send({
      screen: 'developers',
      title: screen.texts.developers.events,
      isLive: to === null,
      main: renderEvents(screen, { type, about, checkoutId, to, looked }),
    })
  })

  get(`${path}/events/:eventId`, read, async (screen) => {
    const { storeId } = screen
    const eventId = screen.part('eventId')
    const [row, { epoch }] = await Promise.all([
      isId('evt', eventId) ? readEvent(screen.ctx.db, storeId, eventId) : null,
      readLogEnd(screen.ctx.db, storeId),
    ])
    if (!row) throw new Refusal('not_found')
    const title = screen.texts.developers.event
    return screen.send({ screen: 'developers', title, main: renderEvent(screen, eventToWire(row), epoch) })
  })
}

/** The checkout that was asked for, by its id or by a payment's. */
async function findCheckout({ ctx, storeId }: Screen, about: string): Promise<string | null> {
  if (isId('ch', about)) return about
  return isId('pay', about) ? await findCheckoutOf(ctx.db, storeId, about) : null
}

/** A sequence from the address; null if it is none. */
export function readNumber(text: string): bigint | null {
  return /^[1-9]\d{0,17}$/.test(text) ? BigInt(text) : null
}
