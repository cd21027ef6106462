/** Whoever signs up by themselves cannot make the operator's server write to strangers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAuthenticator } from '../http/console/support/authenticator.ts'
import { enrolWith, openConsole, openInvitedStore, TestBrowser } from '../http/console/support/console.ts'

const mailing = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'farthing@operator.example' }

async function signUp(policy: string) {
  const console = await openConsole({ settings: { ...mailing, SIGN_UP: policy } })
  const browser = new TestBrowser(console)
  await browser.get('/sign-up')
  const applicant = {
    storeName: 'Security alert: sign in at https://evil.example',
    name: 'Mallory',
    walletAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  }
  const authenticator = openAuthenticator(console.url, false)
  const { memberId, options } = (await browser.done('/sign-up/options', applicant)).json()
  await browser.done('/sign-up', { ...applicant, memberId, answer: authenticator.create(options) })
  await browser.get('/account')
  return { console, browser, authenticator }
}

type Inviter = Pick<Awaited<ReturnType<typeof signUp>>, 'console' | 'browser' | 'authenticator'>

/** Invites somebody to a store, and returns how many mails with links were written for it. */
async function invite({ console, browser, authenticator }: Inviter, storeId: string): Promise<number> {
  const { db } = console.farthing.ctx
  const values = { storeId, name: 'your wallet is closed', role: 'viewer', email: 'victim@bank.example' }
  const touch = await browser.confirm(authenticator, 'member.invite', values)
  const { body } = await browser.done(`/stores/${storeId}/members`, { ...values, touch })
  assert.match(body, /#[A-Za-z0-9_-]{43}/, 'the link is shown all the same')
  const rows = await db.query('select id from mails where about like $1', ['inv%'])
  return rows.length
}

for (const policy of ['open', 'approval'])
  test(`a store that a stranger opened mails nothing before it is known, and no link while it is suspended (${policy})`, async () => {
    const mallory = await signUp(policy)
    const { db } = mallory.console.farthing.ctx
    const stores = await db.query<{ id: string; mode: string }>('select id, mode from stores order by mode')
    assert(stores.length > 0)
    // Nobody has checked whose address a member entered.
    await db.query("update members set email = 'another-victim@bank.example'")
    for (const { id } of stores) assert.equal(await invite(mallory, id), 0)
    assert.deepEqual(await db.query('select id from mails'), [], 'nor news of what they do')
    // It proves its wallet, and is suspended.
    await db.query('update stores set proven_at = clock(), suspended_at = clock(), suspended_reason = $1', [
      'spam',
    ])
    for (const { id } of stores) assert.equal(await invite(mallory, id), 0)
    await db.query('update stores set suspended_at = null, suspended_reason = null')
    let mailed = 0
    for (const { id, mode } of stores) {
      if (mode === 'live') mailed++
      assert.equal(await invite(mallory, id), mailed)
    }
  })

test('a store that the operator opened mails links', async () => {
  const console = await openConsole({ settings: mailing })
  const { store, token } = await openInvitedStore(console)
  assert.equal(await invite({ console, ...(await enrolWith(console, token)) }, store.id), 1)
})
