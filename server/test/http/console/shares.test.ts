/** What the members of one store can ask of the console, and what that costs the members of the others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import {
  type Enrolled,
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
  TestBrowser,
} from './support/console.ts'

const console = await openConsole({ settings: { LOG_LEVEL: 'warn' } })
const { ctx, logged } = console.farthing
const { db, metrics } = ctx

async function openTeam() {
  const { store, token } = await openInvitedStore(console)
  return { store, owner: await enrolWith(console, token) }
}

async function join(owner: Enrolled, storeId: string, role: string): Promise<Enrolled> {
  return await enrolWith(console, await inviteBy(owner, storeId, { name: 'Max', role }))
}

/** What is under way, and what waits, as the metrics say. */
async function queue(of: 'store' | 'member'): Promise<[number, number]> {
  const { values } = await metrics.fairQueue.get()
  const countIn = (state: string) =>
    values.find(({ labels: l }) => l.listener === 'console' && l.of === of && l.state === state)?.value ?? 0
  return [countIn('under_way'), countIn('waiting')]
}

async function refusals(share: string): Promise<number> {
  const { values } = await metrics.shareRefusals.get()
  return values.find(({ labels }) => labels.listener === 'console' && labels.share === share)?.value ?? 0
}

async function connectionsBusy(): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where datname = current_database() and application_name = 'test-console' and state <> 'idle'`,
  )
  return row?.count ?? 0
}

/** A form that waits for the lock of the store's row. */
const withdraw = ({ browser }: Enrolled, storeId: string) =>
  browser.post(`/stores/${storeId}/members/withdraw`, { invitationId: 'inv_x' })

/** While this runs, whatever changes the stores waits. */
async function whileLocked<Result>(
  storeIds: readonly string[],
  work: () => Promise<Result>,
): Promise<Result> {
  return await db.transaction(async (tx) => {
    await tx.query('select id from stores where id = any($1) order by id for update', [storeIds])
    return await work()
  })
}

function countOf(answers: readonly { readonly statusCode: number }[], status: number): number {
  return answers.filter(({ statusCode }) => statusCode === status).length
}

test('three members who send a hundred forms at once have three of four connections at most, and another store’s members read and change as if alone', async () => {
  const { store, owner } = await openTeam()
  const hostile = [owner, await join(owner, store.id, 'owner'), await join(owner, store.id, 'owner')]
  const other = await openTeam()
  const before = await refusals('queue')
  const sent = await whileLocked([store.id], async () => {
    const forms = Array.from({ length: 100 }, (_, i) => withdraw(hostile[i % 3] as Enrolled, store.id))
    // Of each member two are handled and 20 wait; of the store three.
    await until('the others are refused', async () => (await refusals('queue')) - before === 100 - 3 * 22)
    await until('three are under way', async () => (await connectionsBusy()) === 3)
    assert.deepEqual(await queue('member'), [6, 60])
    assert.deepEqual(await queue('store'), [3, 3])
    const { browser } = other.owner
    for (const path of ['', '/payments', '/members', '/wallets'])
      assert.equal((await browser.get(`/stores/${other.store.id}${path}`)).statusCode, 200)
    assert.match(await inviteBy(other.owner, other.store.id, { name: 'Eva', role: 'viewer' }), /./)
    assert.equal(await connectionsBusy(), 3)
    return forms
  })
  const answers = await Promise.all(sent)
  assert.equal(countOf(answers, 404), 3 * 22)
  assert.equal(countOf(answers, 429), 100 - 3 * 22)
  for (const answer of answers.filter(({ statusCode }) => statusCode === 429))
    assert.equal(answer.headers['retry-after'], '1')
  for (const whose of ['store', 'member'] as const) assert.deepEqual(await queue(whose), [0, 0])
  const notes = logged.filter(({ share }) => share === 'queue')
  assert.equal(notes.length, 3, 'one line for each who is refused, not one for each refusal')
})

test('a session that floods the store does not keep another owner’s screens and forms behind its own', async () => {
  const { store, owner } = await openTeam()
  const hostile = await join(owner, store.id, 'owner')
  const answered: string[] = []
  const sent = await whileLocked([store.id], async () => {
    const forms = Array.from({ length: 22 }, async () => {
      const { statusCode } = await withdraw(hostile, store.id)
      answered.push(`hostile ${statusCode}`)
    })
    await until('two of theirs are under way', async () => (await connectionsBusy()) === 2)
    assert.equal((await owner.browser.get(`/stores/${store.id}/members`)).statusCode, 200)
    forms.push(withdraw(owner, store.id).then(() => void answered.push('owner')))
    await until('the owner’s is under way too', async () => (await connectionsBusy()) === 3)
    return forms
  })
  await Promise.all(sent)
  assert(answered.indexOf('owner') < 10, String(answered))
})

test('a member of many stores has two requests under way in all of them together', async () => {
  const teams = [await openTeam(), await openTeam(), await openTeam(), await openTeam()]
  const [first] = teams
  assert(first)
  const [{ id: memberId } = { id: '' }] = await db.query<{ id: string }>(
    'select member_id as id from memberships where store_id = $1',
    [first.store.id],
  )
  for (const { store } of teams.slice(1))
    await db.query(
      `insert into memberships (store_id, member_id, role, created_at) values ($1, $2, 'owner', clock())`,
      [store.id, memberId],
    )
  const sent = await whileLocked(
    teams.map(({ store }) => store.id),
    async () => {
      const forms = teams.flatMap(({ store }) =>
        Array.from({ length: 5 }, () => withdraw(first.owner, store.id)),
      )
      await until('two are handled and the others wait', async () => String(await queue('member')) === '2,18')
      await until('two are under way', async () => (await connectionsBusy()) === 2)
      return forms
    },
  )
  assert.equal(countOf(await Promise.all(sent), 404), 20)
  assert.deepEqual(await queue('member'), [0, 0])
})

test('HEAD takes one place, as GET does, and a request that fails leaves none behind', async () => {
  const { store, owner } = await openTeam()
  const { browser } = owner
  const head = () =>
    console.app.inject({
      method: 'HEAD',
      url: `/stores/${store.id}/members`,
      headers: { cookie: browser.cookie },
      remoteAddress: browser.remoteAddress,
    })
  const answers = await Promise.all(Array.from({ length: 10 }, head))
  assert.equal(countOf(answers, 200), 10)
  assert.equal((await browser.get(`/stores/${store.id}/nothing`)).statusCode, 404)
  assert.equal((await browser.post('/confirm', { action: 'nonsense' })).statusCode >= 400, true)
  for (const whose of ['store', 'member'] as const) assert.deepEqual(await queue(whose), [0, 0])
})

test('a store’s members together may ask as often as one address, wherever they are; another store’s are not refused', async () => {
  const perSecond = 20
  const limited = await openConsole({
    settings: { ADDRESS_REQUESTS_PER_SECOND: `${perSecond}`, KEY_REQUESTS_PER_SECOND: '1000' },
  })
  const { store, token } = await openInvitedStore(limited)
  const other = await openInvitedStore(limited)
  const owner = await enrolWith(limited, token)
  const team = [owner]
  for (let i = 0; i < 3; i++)
    team.push(await enrolWith(limited, await inviteBy(owner, store.id, { name: `Max ${i}`, role: 'viewer' })))
  const neighbour = await enrolWith(limited, other.token)
  limited.farthing.clock.now = new Date(Date.now() + 60_000)
  const answers = await Promise.all(
    team.flatMap(({ browser }) =>
      Array.from({ length: 10 }, () => browser.get(`/stores/${store.id}/payments`)),
    ),
  )
  assert.equal(countOf(answers, 200), perSecond)
  assert.equal(countOf(answers, 429), 4 * 10 - perSecond)
  assert.equal((await neighbour.browser.get(`/stores/${other.store.id}/payments`)).statusCode, 200)
  // One session at many addresses: the member's own share.
  limited.farthing.clock.now = new Date(Date.now() + 120_000)
  const roaming = Array.from({ length: 30 }, () => {
    const browser = new TestBrowser(limited)
    browser.cookie = owner.browser.cookie
    return browser
  })
  const accounts = await Promise.all(roaming.map((browser) => browser.get('/account')))
  assert.equal(countOf(accounts, 200), perSecond)
  assert.equal(countOf(accounts, 429), 10)
  // Who is not signed in has the share of their address only.
  assert.equal((await new TestBrowser(limited).get('/sign-in')).statusCode, 200)
})
