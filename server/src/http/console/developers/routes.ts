import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { readRecent } from '../../../events/webhooks/recent.ts'
import { listBacklogs } from '../../../events/webhooks/recent-rows.ts'
import { isKeyId, pageKeys } from '../../../stores/api-keys.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import { openScreen, withQuery } from '../screen.ts'
import { listAllEndpoints, mountDeliveries } from './deliveries.ts'
import { renderDeliveries } from './delivery-list.ts'
import { renderEndpoints, waitingMax } from './endpoint-list.ts'
import { mountEndpoints } from './endpoints.ts'
import { mountEvents } from './events.ts'
import { mayMake, mountKeys, renderKeys } from './keys.ts'
import { renderTabs } from './parts.ts'

/** As many as a store can have in use; revoked ones are on further pages. */
const keysPerPage = 50
const latestDeliveries = 5

/** What a developer needs to connect a shop: its keys, where its events go, and whether they arrive. */
export function mountDevelopers(scope: FastifyInstance, ctx: Context): void {
  scope.get(
    '/stores/:storeId/developers',
    { config: { right: 'developers:read' } },
    async (request, reply) => {
      const screen = openScreen(ctx, request, reply)
      const { base, storeId, may } = screen
      const texts = screen.texts.developers
      const cursor = isKeyId(screen.asked('keys')) ? screen.asked('keys') : null
      const [found, endpoints, backlogs] = await Promise.all([
        pageKeys(screen.ctx.db, storeId, { cursor, limit: keysPerPage + 1 }),
        listAllEndpoints(screen),
        listBacklogs(screen.ctx.db, storeId, waitingMax + 1),
      ])
      const keys = found.slice(0, keysPerPage)
      const next = found.length > keysPerPage ? (keys.at(-1)?.id ?? null) : null
      const ids = endpoints.map(({ id }) => id)
      const { deliveries } = await readRecent(screen.ctx, storeId, ids, {
        ...{ state: null, type: null, before: null, limit: latestDeliveries },
      })
      return screen.send({
        screen: 'developers',
        title: texts.title,
        isLive: true,
        main: html`${renderTabs(screen, 'keys')}
<section class="pane" id="keys"><div class="row apart"><div><h2>${texts.keys}</h2>
<p class="soft">${texts.keysAbout}${may('keys:write') && !mayMake(screen) && html` ${texts.ownersMake}`}</p></div>${
          mayMake(screen) && html`<a class="button" href="${base}/developers/keys/new">${texts.newKey}</a>`
        }</div></section>
${renderKeys(screen, keys)}
${
  (next ?? cursor) !== null &&
  html`<p class="pane row">${
    cursor !== null && html`<a class="filter" href="${base}/developers">${texts.newest}</a>`
  }${
    next !== null &&
    html`<a class="filter" href="${withQuery(`${base}/developers`, { keys: next })}">${texts.older}</a>`
  }</p>`
}
${renderApiLine(screen, { path: withQuery('/keys', { limit: `${keysPerPage}`, cursor }) }, 'keys')}
<section class="pane" id="endpoints"><div class="row apart"><div><h2>${texts.endpoints}</h2>
<p class="soft">${texts.endpointsAbout}</p></div>${
          may('webhooks:write') &&
          html`<a class="button quiet" href="${base}/developers/endpoints/new">${texts.addEndpoint}</a>`
        }</div>
${renderEndpoints(screen, endpoints, backlogs)}</section>
${renderApiLine(screen, { path: '/webhook-endpoints?limit=100' }, 'endpoints')}
${
  deliveries.length > 0 &&
  html`<section class="pane row apart"><h2>${texts.latest}</h2>
<a href="${base}/developers/deliveries">${texts.tabs.deliveries}</a></section>${renderDeliveries(
    screen,
    deliveries,
    endpoints,
  )}`
}`,
      })
    },
  )
  mountKeys(scope, ctx)
  mountEndpoints(scope, ctx)
  mountDeliveries(scope, ctx)
  mountEvents(scope, ctx)
}
