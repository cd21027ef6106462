/** What a copied cookie opens: the worst case, an owner's, on every route that changes something. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { dumpRows } from '../../support/dump.ts'
import { registerWallet } from '../../support/store.ts'
import { enrolWith, inviteBy, openConsole, signInWith, TestBrowser } from './support/console.ts'
import { listRoutes } from './support/routes.ts'
import { b, c, isStatus, openGuardedStore, read } from './support/wallets.ts'

const console = await openConsole()
const { db } = console.farthing.ctx

/** Routes that prove who somebody is instead of asking who they are, and the one that asks for a touch. */
const open = /^\/(enrol|sign-in|recover|confirm|passkeys\/options)(\/|$)/
/**
 * Without a touch: what ends something or puts it off, what is done all day at a counter, and what sends the store's own
 * events to its own endpoints. A refund goes back to whoever signed the payment, and moves only by the wallet's signature.
 */
const free = [
  ...['/sessions/end', '/sign-out', '/members/withdraw', '/wallets/refuse', '/codes/refuse'],
  ...['/checkouts/:checkoutId/cancel', '/payments/:paymentId/note', '/new', '/start/skip', '/branding'],
  ...['/inbox/accept', '/inbox/dismiss', '/inbox/dismiss-all', '/inbox/undo'],
  '/links/:linkId/close',
  ...['/payments/:paymentId/refund', '/refunds/:refundId/cancel', '/refunds/:refundId/prepare'],
  ...['/refunds/:refundId/signature', '/refunds/:refundId/transaction', '/refunds/:refundId/address-request'],
  // A proof needs the wallet's own signature.
  ...['/wallets/new', '/challenge', '/prove', '/message', '/signature'],
  // A difference that is explained is still there, and money that is recovered is the store's.
  ...['/reports/audit/recover', '/reports/audit/explain', '/reports/mapping', '/reports/mapping/delete'],
  ...['/developers/deliveries/resend', '/developers/endpoints/resend', '/developers/endpoints/test'],
]

test('a stolen cookie of an owner looks around, refuses and withdraws, and changes nothing that takes a touch', async () => {
  const { store, owner, changes, confirm, newest } = await openGuardedStore(console)
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  await inviteBy(owner, store.id, { name: 'Ina', role: 'viewer' })
  await registerWallet(store, b)
  await isStatus(confirm(await newest()), 303)
  await registerWallet(store, c)
  const elsewhere = await signInWith(console, owner.authenticator)

  const thief = new TestBrowser(console)
  thief.cookie = owner.browser.cookie
  const page = await read(thief, '/account')
  assert(page.includes('Shop') && thief.formToken !== '')
  assert((await read(thief, `/stores/${store.id}/members`)).includes('Max'))
  const [waiting = assert.fail(), made = assert.fail()] = await changes()
  const members = await listStoreMembers(db, store.id)
  const { id: memberId = '' } = members.find(({ name }) => name === 'Max') ?? assert.fail()
  const [{ passkeyId } = assert.fail()] = await db.query<{ passkeyId: string }>(
    'select id as "passkeyId" from passkeys where credential_id = $1',
    [owner.authenticator.id],
  )
  const { id: endpointId } = (
    await store.call('POST', '/api/v1/webhook-endpoints', { url: 'https://shop.example/' })
  ).json()
  const [{ id: walletId } = assert.fail()] = await db.query<{ id: string }>(
    'select id from wallets where store_id = $1 and address = $2',
    [store.id, b],
  )
  const fields = {
    ...{ walletId, family: 'EVM', custodialType: 'NON_CUSTODIAL', paidNow: b, paidNext: '' },
    ...{
      preset: 'full',
      label: 'Eve',
      keyId: store.key.split('_')[2],
      endpointId,
      url: 'https://eve.example/',
    },
    ...{ status: 'disabled', overlapSeconds: '0' },
    ...{ name: 'Eve', email: '', role: 'owner', memberId, passkeyId, walletChanges: 'key', address: c },
    ...{ changeId: waiting.id, kind: 'use', storeId: store.id, until: new Date().toISOString() },
  }
  const before = await dumpRows(db)
  const guarded = listRoutes(console.app)
    .filter(({ method, path }) => method === 'POST' && !open.test(path))
    .map(({ path }) => path.replace(':storeId', store.id))
    .filter((path) => !free.some((end) => path.endsWith(end)))
  assert(guarded.length >= 18, guarded.join())
  for (const path of guarded)
    for (const touch of [undefined, {}, max.authenticator.touch({ challenge: 'eA' })]) {
      const changeId = path.endsWith('/undo') ? made.id : waiting.id
      const { statusCode, body } = await thief.post(path, { ...fields, changeId, touch })
      assert(statusCode >= 400 && statusCode < 500, `${path}: ${statusCode} ${body}`)
    }
  assert.equal(await dumpRows(db), before, 'nothing was written')

  // What it can do all the same.
  const [{ id: invitationId } = assert.fail()] = await db.query<{ id: string }>(
    'select id from invitations where store_id = $1 and used_at is null',
    [store.id],
  )
  await isStatus(thief.post(`/stores/${store.id}/members/withdraw`, { invitationId }), 303)
  await isStatus(thief.post(`/stores/${store.id}/wallets/refuse`, { changeId: waiting.id }), 303)
  const [{ id: sessionId } = assert.fail()] = await db.query<{ id: string }>(
    'select id from sessions order by id desc limit 1',
  )
  await isStatus(thief.post('/sessions/end', { sessionId }), 303)
  assert.equal((await elsewhere.get('/account')).statusCode, 303, 'the owner is signed out there')
})
