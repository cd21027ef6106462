import { updateLink } from '../../../checkouts/links/update.ts'
import { listWithReceived } from '../../../checkouts/read.ts'
import { isId } from '../../../ids.ts'
import { listLinks, readLink } from '../../../links/read.ts'
import { Refusal } from '../../../members/refusal.ts'
import { Problem } from '../../../problems.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { renderLink, renderLinks } from './view.ts'

const path = '/links'
const reading = 'payments:read'
const linksPerPage = 50
/** The newest. The list of payments has all. */
const checkoutsMax = 20

/** The links of a store: each with its address to show or send, and the checkouts that buyers got. */
export function mountStoreLinks({ get, post }: StoreRoutes): void {
  get(path, reading, async (screen) => {
    const cursor = screen.asked('before')
    const query = { cursor: isId('lnk', cursor) ? cursor : null, limit: linksPerPage }
    const page = await listLinks(screen.ctx, screen.storeId, query)
    return await screen.send({
      screen: 'payments',
      title: screen.texts.links.title,
      isLive: true,
      main: html`${renderLinks(screen, page, query.cursor)}${renderApiLine(screen, { path })}`,
    })
  })

  get(`${path}/:linkId`, reading, async (screen) => {
    const { ctx, storeId } = screen
    const link = await find(screen)
    const { data } = await listWithReceived(ctx, storeId, { linkId: link.id, limit: checkoutsMax })
    return await screen.send({
      screen: 'payments',
      title: link.title,
      isLive: true,
      main: html`${renderLink(screen, link, data)}${renderApiLine(screen, { path: `${path}/${link.id}` })}`,
    })
  })

  post(`${path}/:linkId/close`, 'checkouts:write', async (screen) => {
    const { memberCtx, storeId, actor, now } = screen
    const { id: linkId } = await find(screen)
    await updateLink(memberCtx, storeId, actor, { linkId, input: { status: 'CLOSED' } }, now)
    return screen.go(`${path}/${linkId}`)
  })
}

async function find({ ctx, storeId, part }: Screen) {
  try {
    return await readLink(ctx, storeId, part('linkId'))
  } catch (error) {
    if (error instanceof Problem && error.code === 'not_found') throw new Refusal('not_found')
    throw error
  }
}
