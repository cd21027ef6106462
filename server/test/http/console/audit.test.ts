/** What the audit found, as an owner meets it: on Home, on its screen, and until it is settled. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listAudited } from '../../../src/audit/audited.ts'
import { auditDue } from '../../../src/audit/run.ts'
import { examine } from '../../../src/commands/doctor.ts'
import { plantCredit } from '../../audit/support/auditing.ts'
import { openEvm } from '../../support/chain/evm.ts'
import { openClient, startWork } from '../../support/client.ts'
import { openAs } from '../../support/database.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { wallets } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { openBrowser } from '../page/support/browser.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { openSignedIn } from './support/furnished.ts'

const chain = await openEvm()
const followed = await openFaultyNode(chain.url)
const console = await openConsole({
  listens: true,
  settings: {
    ...{ NETWORKS: 'LOCAL', LOCAL_RPC_URLS: followed.url, LOCAL_AUDIT_RPC_URLS: chain.url },
    ...{ ECB_RATES_URL: '', EXCHANGE_RATES_URL: '' },
  },
})
const { farthing } = console
const { db } = farthing.ctx
const chromium = await openBrowser()
const [payTo] = wallets
const { store, token } = await openInvitedStore(console, { mode: 'test', evmWallet: payTo })
const owner = await enrolWith(console, token)
const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
startWork(farthing)
const path = `/stores/${store.id}`
const screen = `${path}/reports/audit`

const auditCtx = { ...farthing.ctx, db: openAs('audit', farthing.databaseUrl) }
async function audit(): Promise<void> {
  const asked = { isOver: () => false, tell: () => {}, tellStray: () => {} }
  await auditDue(auditCtx, listAudited(auditCtx), new Date(Number(await chain.time()) * 1_000), asked)
}

async function endDay(): Promise<void> {
  await chain.setNextBlockTimestamp((BigInt(await chain.time()) / 86_400n + 1n) * 86_400n + 60n)
  await chain.mine(70)
}

async function untilRead(): Promise<void> {
  const { number } = await chain.client.getBlock()
  await until('it is read', async () => {
    const rows = await db.query('select 1 from followers where head_number >= $1', [number])
    return rows.length > 0
  })
}

test('without a comparison the screen says so, and Home asks for nothing', async () => {
  assert.match((await owner.browser.get(screen)).body, /No day was compared yet/)
  assert.doesNotMatch((await owner.browser.get(path)).body, /difference from the chain/)
})

test('missed money is on Home, comes into the books by one button, and is then called recovered', async () => {
  await untilRead()
  followed.lie = (call, result) => (call.method === 'eth_getLogs' ? [] : result)
  await chain.mint(payTo, 7_000_000n)
  await untilRead()
  await endDay()
  await untilRead()
  await audit()
  followed.lie = (_, result) => result

  const page = await openSignedIn(chromium, console, owner, { javaScriptEnabled: true })
  await page.goto(`${console.url}${path}`)
  await page.getByRole('link', { name: 'Look at a difference from the chain' }).click()
  await page.getByRole('heading', { name: 'Money that your books lack' }).waitFor()
  assert.match(await page.locator('main').innerText(), /7\.00 USDC arrived at 0x7099…79C8 on Local chain on/)
  assert.match(await page.locator('main').innerText(), /Complete up to \w+ \d/)
  await page.getByRole('button', { name: 'Bring it into the books' }).click()
  await page.getByText('It is being looked up').waitFor()
  await until('the books have it', async () => {
    const rows = await db.query('select 1 from credits where amount = 7000000 and orphaned_at is null')
    return rows.length > 0
  })
  await page.goto(`${console.url}${screen}`)
  await page.getByText('Being compared again', { exact: true }).waitFor()
  assert.doesNotMatch((await owner.browser.get(path)).body, /difference from the chain/)
  await page.goto(`${console.url}${path}/inbox`)
  await page.getByText('7.00 USDC').first().waitFor()
  await audit()
  await page.goto(`${console.url}${screen}`)
  await page.getByRole('heading', { name: 'No open differences' }).waitFor()
  await page.getByText('Recovered', { exact: true }).waitFor()
  await page.context().close()
})

test('of two equal amounts of one transaction, one in the books, the other is open', async () => {
  await db.query("update lookups set looked_at = clock() - interval '1 hour'")
  await db.query(
    `insert into audit_findings (kind, network, wallet, asset, day, transaction_hash, position, amount, store_id, found_at)
     select kind, network, wallet, asset, day, transaction_hash, position + 1, amount, store_id, clock()
     from audit_findings where kind = 'missing'`,
  )
  const seen = (await owner.browser.get(screen)).body
  assert.match(seen, /<button[^>]*>Bring it into the books/)
  assert.match((await owner.browser.get(path)).body, /difference from the chain/)
  await db.query('update audit_findings set resolved_at = clock() where resolved_at is null')
})

test('who may not decide about payments sees a difference and no button; an explained one leaves Home until it is another', async () => {
  const client = openClient(farthing, store.key)
  const at = new Date(Number(await chain.time()) * 1_000)
  await plantCredit({ ...client, chain, databaseUrl: farthing.databaseUrl }, { at })
  await endDay()
  await audit()
  const seen = (await viewer.browser.get(screen)).body
  assert.match(seen, /A payment that the network does not have/)
  assert.doesNotMatch(seen, /<button[^>]*>Save the explanation/)
  assert.doesNotMatch((await viewer.browser.get(path)).body, /difference from the chain/)

  const page = await openSignedIn(chromium, console, owner, { javaScriptEnabled: true })
  await page.goto(`${console.url}${path}`)
  await page.getByRole('link', { name: 'Look at a difference from the chain' }).click()
  assert.equal(await page.getByRole('button', { name: 'Bring it into the books' }).count(), 0)
  await page.getByText('I know what this is').click()
  await page.getByLabel('What it is').fill('A test of ours, <b>on purpose</b>')
  await page.getByRole('button', { name: 'Save the explanation' }).click()
  await page.getByText('The explanation is saved.').waitFor()
  await page.getByText('A test of ours, <b>on purpose</b>').waitFor()
  await page.getByText('Explained', { exact: true }).waitFor()
  assert.doesNotMatch((await owner.browser.get(path)).body, /difference from the chain/)
  await page.context().close()
  const change = async (units: number) =>
    await db.query("update audit_findings set amount = amount + $1 where kind = 'unfounded'", [units])
  const isAsked = async () => /difference from the chain/.test((await owner.browser.get(path)).body)
  await change(1)
  assert(await isAsked())
  // The other amount has its own reason, and the first one is not forgotten.
  const [finding] = await db.query<{ id: string }>(
    "select id::text as id from audit_findings where kind = 'unfounded' and resolved_at is null",
  )
  await owner.browser.post(`${screen}/explain`, { findingId: finding?.id ?? '', note: 'The second reason' })
  assert.match((await owner.browser.get(screen)).body, /The second reason/)
  assert(!(await isAsked()))
  await change(-1)
  assert.match((await owner.browser.get(screen)).body, /on purpose/)
  assert(!(await isAsked()))
  await change(2)
  assert(await isAsked())
})

test('a finding of another store is neither shown nor acted on', async () => {
  const other = await openInvitedStore(console, { mode: 'test', evmWallet: wallets[1] })
  const stranger = await enrolWith(console, other.token)
  const [finding] = await db.query<{ id: string }>('select id::text as id from audit_findings limit 1')
  const there = `/stores/${other.store.id}/reports/audit`
  assert.match((await stranger.browser.get(there)).body, /No day was compared yet/)
  await stranger.browser.post(`${there}/explain`, { findingId: finding?.id ?? '', note: 'mine' })
  await stranger.browser.post(`${there}/recover`, { findingId: finding?.id ?? '' })
  assert.deepEqual(await db.query("select 1 from audit_explanations where note = 'mine'"), [])
  const asked = await db.query<{ count: number }>('select count(*)::integer as count from lookups')
  assert.deepEqual(asked, [{ count: 1 }])
})

test('doctor says how far the audit is, and what is open', async () => {
  const operator = { ...farthing.ctx, db: openAs('operator', farthing.databaseUrl) }
  const told = (await examine(operator, async () => [])).filter(({ what }) => what === 'audit')
  assert.match(told[0]?.says ?? '', /^LOCAL complete up to \d{4}-\d\d-\d\d, last asked at /)
  assert.match(told[1]?.says ?? '', /open findings: 1 unfounded/)
  assert.match(told[1]?.fix ?? '', /audit check/)
  assert(!told.some(({ says }) => says.includes('changed payments')))
  await db.query(
    `insert into audit_changes (network, wallet, day, changes, changed_at)
     values ('eip155:1', '0x', '2026-01-01', 1, clock() - interval '6 days')`,
  )
  const waiting = (await examine(operator, async () => [])).filter(({ what }) => what === 'audit')
  assert(waiting.some(({ says, fix }) => /changed payments were not compared since/.test(says) && fix))
  await db.query("update audit_runs set ran_at = clock() - interval '2 days'")
  const late = (await examine(operator, async () => [])).find(({ what }) => what === 'audit')
  assert.match(late?.fix ?? '', /Start the audit/)
})
