/** What surrounds every screen: the navigation by role, the theme, and the stream that keeps screens current. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patienceMs } from '../../support/patience.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore, TestBrowser } from './support/console.ts'

const console = await openConsole({ listens: true })

async function openTeam() {
  const { store, token } = await openInvitedStore(console)
  return { store, owner: await enrolWith(console, token) }
}

/** Reads a stream of numbers until one satisfies. */
async function readUntil(response: Response, isWanted: (last: number) => boolean): Promise<number> {
  assert(response.body)
  let text = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const last = Number(
      text
        .match(/data: (\d+)\n\n/g)
        ?.at(-1)
        ?.match(/\d+/)?.[0],
    )
    if (isWanted(last)) return last
  }
  return assert.fail('the stream ended')
}

test('a screen’s stream says how far the log goes, and again when it has grown; a session that ended opens none', async () => {
  const { store, owner } = await openTeam()
  const open = (cookie: string) =>
    fetch(`${console.url}/stores/${store.id}/live`, {
      headers: { cookie },
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
    })
  const stream = await open(owner.browser.cookie)
  assert.match(stream.headers.get('content-type') ?? '', /^text\/event-stream/)
  const wallets = await owner.browser.get(`/stores/${store.id}/members`)
  const first = (await store.events()).length
  assert.match(wallets.body, /<main id="main"/)
  const grown = readUntil(stream, (last) => last > first)
  await inviteBy(owner, store.id, { name: 'Max', role: 'viewer' })
  await store.events()
  assert.equal(await grown, first + 1)
  await owner.browser.done('/sign-out')
  assert.equal((await open(owner.browser.cookie)).status, 303)
})

test('with 200 screens of one store to tell, a screen of another does not wait for them', async () => {
  const [busy, quiet] = [await openTeam(), await openTeam()]
  const leaving = new AbortController()
  const open = ({ store, owner }: typeof busy) =>
    fetch(`${console.url}/stores/${store.id}/live`, {
      headers: { cookie: owner.browser.cookie },
      signal: leaving.signal,
    })
  const seen = [(await busy.store.events()).length, (await quiet.store.events()).length] as const
  let told = 0
  let tellFirst = () => {}
  const isFirstTold = new Promise<void>((resolve) => {
    tellFirst = resolve
  })
  for (const stream of await Promise.all(Array.from({ length: 200 }, () => open(busy))))
    readUntil(stream, (last) => last > seen[0]).then(
      () => {
        told++
        tellFirst()
      },
      () => {},
    )
  const isTold = readUntil(await open(quiet), (last) => last > seen[1])
  await inviteBy(busy.owner, busy.store.id, { name: 'Max', role: 'viewer' })
  await busy.store.events()
  await isFirstTold
  await inviteBy(quiet.owner, quiet.store.id, { name: 'Max', role: 'viewer' })
  await quiet.store.events()
  await isTold
  assert(told < 100, `${told} screens of the other store were told before`)
  leaving.abort()
})

test('a screen that loads itself again does not keep the session alive', async () => {
  const { store, owner } = await openTeam()
  const { db } = console.farthing.ctx
  await db.query(`update sessions set seen_at = clock() - interval '1 hour'
    where member_id = (select member_id from memberships where store_id = '${store.id}')`)
  const seen = async () =>
    (await db.query(`select max(seen_at) as at from sessions s join memberships m using (member_id)
      where m.store_id = '${store.id}'`)) as unknown
  const before = await seen()
  const load = (headers: Readonly<Record<string, string>>) =>
    console.app.inject({ url: '/account', headers: { cookie: owner.browser.cookie, ...headers } })
  assert.equal((await load({ 'x-refresh': '1' })).statusCode, 200)
  assert.deepEqual(await seen(), before)
  await load({})
  assert.notDeepEqual(await seen(), before)
})

test('API details are shown to developers, and to everybody else once they choose it; the choice is kept', async () => {
  const { store, owner } = await openTeam()
  const base = `/stores/${store.id}`
  const developer = await enrolWith(
    console,
    await inviteBy(owner, store.id, { name: 'Devi', role: 'developer' }),
  )
  const hasDetails = async (path: string, { browser } = owner) =>
    (await browser.get(path)).body.includes('id="same-api')
  assert.equal(await hasDetails(`${base}/payments`), false)
  assert.equal(await hasDetails(`${base}/developers`, developer), true)
  assert.equal(await hasDetails(`${base}/developers?details=hidden`, developer), false)
  const { body, headers } = await owner.browser.get(`${base}/payments?status=OPEN&details=shown`)
  assert.match(body, /id="same-api/)
  assert.match(body, /href="\?status=OPEN&#38;details=hidden"/)
  assert.equal(headers['set-cookie'], 'details=shown; Path=/; SameSite=Lax; Max-Age=31536000')
  assert.equal(await hasDetails(`${base}/payments?details=%22%3E`), false)
})

test('the theme is the one that was chosen, and the choice keeps the rest of the address', async () => {
  const { owner } = await openTeam()
  const load = (url: string, cookie = '') =>
    console.app.inject({ url, headers: { cookie: `${owner.browser.cookie}; ${cookie}` } })
  assert.doesNotMatch((await load('/account')).body, /<html[^>]* data-theme/)
  const chosen = await load('/account?q=a%22b&theme=dark')
  assert.match(chosen.body, /<html lang="en" dir="ltr" data-theme="dark">/)
  assert.match(chosen.body, /href="\?q=a%22b&#38;theme=light"/)
  assert.deepEqual([chosen.headers['set-cookie']].flat(), [
    'theme=dark; Path=/; SameSite=Lax; Max-Age=31536000',
  ])
  assert.match((await load('/account', 'theme=light')).body, /<html[^>]* data-theme="light"/)
  assert.doesNotMatch((await load('/account?theme=%3Cscript%3E', 'theme=x')).body, /<html[^>]* data-theme/)
})

test('the navigation names what the role may open, and the store switcher every store of the member', async () => {
  const { store, owner } = await openTeam()
  const { body } = await owner.browser.get(`/stores/${store.id}/members`)
  const nav = /<nav class="nav"[\s\S]*?<\/nav>/.exec(body)?.[0] ?? ''
  assert.match(nav, /href="[^"]*\/members" aria-current="page"/)
  assert.match(nav, new RegExp(`href="/stores/${store.id}/wallets"`))
  assert.doesNotMatch(body, /class="band"/, 'a live store')
  const nobody = new TestBrowser(console)
  assert.equal((await nobody.get('/')).headers.location, '/sign-in')
})
