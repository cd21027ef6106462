import type { Context } from '../../../../context.ts'
import { isId, type StoreId } from '../../../../ids.ts'
import { Refusal } from '../../../../members/refusal.ts'
import type { Mode } from '../../../../networks.ts'
import { checkText } from '../../../../stores/check-text.ts'
import {
  countWaiting,
  createStoreAsOperator,
  decideAsOperator,
  inviteOwnerAsOperator,
  listOverviews,
  readOverview,
} from '../../../../stores/operate.ts'
import { reasonBytesMax, type StandingDecision } from '../../../../stores/standing.ts'
import { networksFor } from '../../../../stores/store.ts'
import { cutPage } from '../../../route.ts'
import { readEmail, readName } from '../../fields.ts'
import { sendInvitation } from '../../parts.ts'
import type { Page, PageRoutes } from '../../screen.ts'
import { path, renderCreate, renderList, renderStore, searchMax, standings } from './view.ts'

const perPage = 50
const modes: readonly Mode[] = ['live', 'test']
const verbs = ['approve', 'suspend', 'resume'] as const

/** Every store's name and health; approving, suspending, resuming; creating one with a link for its owner. */
export function mountStores({ get, post }: PageRoutes, ctx: Context, { db }: Pick<Context, 'db'>): void {
  get(path, async (page) => {
    const { q } = page.request.query as { q?: unknown }
    const search = typeof q === 'string' ? q.trim().slice(0, searchMax) : ''
    const standing = standings.find((each) => each === page.asked('standing')) ?? null
    const before = isId('st', page.asked('before')) ? page.asked('before') : null
    const [found, waiting] = await Promise.all([
      listOverviews(db, { search, standing, before, limit: perPage + 1 }),
      countWaiting(db),
    ])
    const { data: stores, nextCursor: next } = cutPage(found, perPage)
    return await page.send({
      screen: 'stores',
      title: page.texts.stores.stores.title,
      main: renderList(page, { stores, search, standing, before, next, waiting }),
    })
  })

  get(`${path}/new`, async (page) => {
    const offered = modes.filter((mode) => networksFor(ctx, mode).length > 0)
    const { title } = page.texts.stores.create
    return await page.send({ screen: 'stores', title, main: renderCreate(page, offered) })
  })

  get(`${path}/:id`, async (page) => {
    const store = await readOverview(db, page.part('id'))
    if (!store) throw new Refusal('not_found')
    return await page.send({ screen: 'stores', title: store.name, main: renderStore(page, store) })
  })

  post(path, async (page) => {
    const mode = modes.find((each) => each === page.field('mode'))
    if (!mode) throw new Refusal('invalid')
    const storeName = readName(page, 'storeName', page.texts.stores.create.storeName)
    const [name, email] = [readName(page, 'name'), readEmail(page)]
    const touch = await page.touch()
    const made = await createStoreAsOperator(ctx, touch, { storeName, mode, name, email }, ctx.now())
    return await sendInvitation(page, made, page.texts.stores.link, `${path}/${made.invitation.storeId}`)
  })

  post(`${path}/invite`, async (page) => {
    const storeId = readStoreId(page)
    const [name, email] = [readName(page, 'name'), readEmail(page)]
    const made = await inviteOwnerAsOperator(ctx, storeId, await page.touch(), { name, email }, ctx.now())
    return await sendInvitation(page, made, page.texts.stores.link, `${path}/${made.invitation.storeId}`)
  })

  for (const verb of verbs) {
    post(`${path}/${verb}`, async (page) => {
      const storeId = readStoreId(page)
      const touch = await page.touch()
      const decision: StandingDecision = verb === 'suspend' ? { verb, reason: readReason(page) } : { verb }
      await decideAsOperator(ctx, storeId, touch, decision, ctx.now())
      return page.go(`${path}/${storeId}`)
    })
  }
}

function readStoreId({ field }: Page): StoreId {
  const storeId = field('storeId')
  if (!isId('st', storeId)) throw new Refusal('not_found')
  return storeId
}

function readReason({ field }: Page): string {
  const reason = field('reason')
  if (checkText('reason', reason, reasonBytesMax).length > 0) throw new Refusal('invalid')
  return reason
}
