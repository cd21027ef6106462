import type { Context } from '../../../context.ts'
import { lookBack } from '../../../events/read.ts'
import { listStoreMembers } from '../../../members/rows.ts'
import { pageKeys } from '../../../stores/api-keys.ts'
import { readNumber } from '../developers/routes.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { type Group, kinds, perPage, renderActivity } from './view.ts'

/** As many as a store can have in use. Older ones can be asked for by their id in the address. */
const keysShown = 100

/**
 * The audit log: sentences about what members, keys and operators did. It reads the event log, which is mostly about
 * checkouts, so a page searches a bounded stretch of it (see `lookBack`) and offers to go on.
 */
export function mountActivity({ get }: StoreRoutes, ctx: Context): void {
  get('/activity', 'activity:read', async (screen) => {
    const actor = screen.asked('actor').replaceAll('\0', '')
    const kind = kinds.find((each) => each === screen.asked('kind')) ?? ''
    const to = readNumber(screen.asked('to'))
    const type = kind === '' ? null : `${kind}.*`
    const wanted = { type, actor: actor || null, checkoutId: null, isByActor: true }
    const [people, looked] = await Promise.all([
      listPeople(ctx, screen),
      lookBack(screen.ctx, screen.storeId, wanted, { to, limit: perPage }),
    ])
    return screen.send({
      screen: 'activity',
      title: screen.texts.activity.title,
      isLive: to === null,
      main: renderActivity(screen, { actor, kind, to, people, looked }),
    })
  })
}

async function listPeople(outer: Context, { ctx, storeId, texts }: Screen): Promise<Group[]> {
  const [members, keys] = await Promise.all([
    listStoreMembers(outer.db, storeId),
    pageKeys(ctx.db, storeId, { cursor: null, limit: keysShown }),
  ])
  return [
    { label: texts.activity.members, people: members.map(({ id, name }) => ({ id, name })) },
    { label: texts.activity.keys, people: keys.map(({ id, label }) => ({ id, name: label ?? id })) },
  ]
}
