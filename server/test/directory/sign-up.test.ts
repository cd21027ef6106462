/** Strangers in a cell that shares a directory: their wallet is not used before they have proven it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { adopt } from '../../src/directory/adopt.ts'
import { writeTakesStores } from '../../src/directory/cells.ts'
import { openAuthenticator } from '../http/console/support/authenticator.ts'
import { openConsole, TestBrowser } from '../http/console/support/console.ts'
import { wallets } from '../support/store.ts'
import { openDirectory, report } from './support/cells.ts'

const directory = await openDirectory()
const console = await openConsole({ settings: { SIGN_UP: 'open', CELL: '0a', DIRECTORY_URL: directory.url } })
const { ctx } = console.farthing
await adopt(ctx, openUses(ctx.db))
const stranger = { name: 'Sam', storeName: 'Sam’s shop', walletAddress: wallets[0] }

test('whoever signs up sees on the wallets’ screen that the wallet waits for a signature, and nobody owns it', async () => {
  const browser = new TestBrowser(console)
  await browser.get('/sign-up')
  const { memberId, options } = (await browser.done('/sign-up/options', { ...stranger })).json()
  const answer = openAuthenticator(browser.url).create(options)
  await browser.done('/sign-up', { ...stranger, memberId, answer })
  const found = await ctx.db.query<{ id: string; store_id: string; registration: string; unowned: boolean }>(
    'select id, store_id, registration, unowned from wallets',
  )
  assert.equal(found.length, 2)
  for (const { registration, unowned } of found) assert(unowned && registration === '0')
  const screen = await browser.get(`/stores/${found[0]?.store_id}/wallets`)
  assert.match(screen.body, /Waiting for a signature/)
  assert.match(screen.body, /Nothing is paid to it until a signature proves that it is yours/)
  assert(screen.body.includes(`/wallets/${found[0]?.id}">Prove that it is yours`))
  assert.deepEqual(await directory.db.query('select 1 from owners'), [])
})

test('a cell that is drained opens no stores for strangers', async () => {
  await writeTakesStores(ctx, '0a', false)
  await report({ ctx })
  const browser = new TestBrowser(console)
  await browser.get('/sign-up')
  const refused = await browser.post('/sign-up/options', { ...stranger })
  assert.equal(refused.statusCode, 409)
  assert.match(refused.body, /New stores cannot be opened here/)
})
