import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Context } from '../../../../context.ts'
import { isId, type StoreId } from '../../../../ids.ts'
import type { NewInvitation } from '../../../../members/invite.ts'
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
import { fill, html } from '../../../page/html.ts'
import { readEmail, readName, readText } from '../../fields.ts'
import { showExactTime } from '../../formats.ts'
import { sendSecret } from '../../parts.ts'
import { openPage, type Page } from '../../screen.ts'
import { path, renderCreate, renderList, renderStore, searchMax, standings } from './view.ts'

const perPage = 50
const modes: readonly Mode[] = ['live', 'test']
const verbs = ['approve', 'suspend', 'resume'] as const

/** Every store's name and health; approving, suspending, resuming; creating one with a link for its owner. */
export function mountStores(scope: FastifyInstance, ctx: Context, { db }: Pick<Context, 'db'>): void {
  scope.get(path, async (request, reply) => {
    const page = openPage(ctx, request, reply)
    const { q } = request.query as { q?: unknown }
    const search = typeof q === 'string' ? q.trim().slice(0, searchMax) : ''
    const standing = standings.find((each) => each === page.asked('standing')) ?? null
    const before = isId('st', page.asked('before')) ? page.asked('before') : null
    const [found, waiting] = await Promise.all([
      listOverviews(db, { search, standing, before, limit: perPage + 1 }),
      countWaiting(db),
    ])
    const stores = found.slice(0, perPage)
    const next = found.length > perPage ? (stores.at(-1)?.id ?? null) : null
    return await page.send({
      screen: 'stores',
      title: page.texts.stores.stores.title,
      main: renderList(page, { stores, search, standing, before, next, waiting }),
    })
  })

  scope.get(`${path}/new`, async (request, reply) => {
    const page = openPage(ctx, request, reply)
    const offered = modes.filter((mode) => networksFor(ctx, mode).length > 0)
    const { title } = page.texts.stores.create
    return await page.send({ screen: 'stores', title, main: renderCreate(page, offered) })
  })

  scope.get(`${path}/:id`, async (request, reply) => {
    const page = openPage(ctx, request, reply)
    const store = await readOverview(db, page.part('id'))
    if (!store) throw new Refusal('not_found')
    return await page.send({ screen: 'stores', title: store.name, main: renderStore(page, store) })
  })

  scope.post(path, async (request, reply) => {
    const page = openPage(ctx, request, reply)
    const mode = modes.find((each) => each === page.field('mode'))
    if (!mode) throw new Refusal('invalid')
    const storeName = readText(request, 'storeName', page.texts.stores.create.storeName)
    const [name, email] = [readName(request, 'name'), readEmail(request)]
    const touch = await page.touch()
    const made = await createStoreAsOperator(ctx, touch, { storeName, mode, name, email }, ctx.now())
    return await sendLink(page, made)
  })

  scope.post(`${path}/invite`, async (request, reply) => {
    const page = openPage(ctx, request, reply)
    const storeId = readStoreId(page)
    const [name, email] = [readName(request, 'name'), readEmail(request)]
    const made = await inviteOwnerAsOperator(ctx, storeId, await page.touch(), { name, email }, ctx.now())
    return await sendLink(page, made)
  })

  for (const verb of verbs) {
    scope.post(`${path}/${verb}`, async (request, reply) => {
      const page = openPage(ctx, request, reply)
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

function sendLink(page: Page, { link, invitation, isMailed }: NewInvitation): Promise<FastifyReply> {
  const { name, email, storeId, expiresAt } = invitation
  const texts = page.texts.stores.link
  const about = fill(texts.about, { time: showExactTime(page.locale, expiresAt) })
  const mailed = isMailed && html` ${fill(texts.mailed, { email: email ?? '' })}`
  return sendSecret(page, {
    title: texts.title,
    heading: fill(texts.heading, { name }),
    about: html`${about}${mailed}`,
    secret: link,
    copy: texts.copy,
    back: { href: `${path}/${storeId}`, text: texts.back },
  })
}
