/** A store with a past and people, for tests that look at every screen. */
import assert from 'node:assert/strict'
import type { Checkout, Event, Link } from '@farthing/sdk'
import type { BrowserContextOptions, Browser as Chromium, Page } from 'playwright-core'
import { numberEvents } from '../../../../src/checkouts/number-events.ts'
import { countRollups } from '../../../../src/checkouts/rollups/count.ts'
import { writeHistory } from '../../../../src/dev/history.ts'
import { createEndpoint } from '../../../../src/events/webhooks/endpoints.ts'
import { setOperator } from '../../../../src/members/operators.ts'
import { listStoreMembers } from '../../../../src/members/rows.ts'
import { hashToken, newToken } from '../../../../src/members/token.ts'
import { bookDue } from '../../../../src/movements/book-due.ts'
import { networks } from '../../../../src/networks.ts'
import { createRefund } from '../../../../src/refunds/create.ts'
import { createKey } from '../../../../src/stores/api-keys.ts'
import { updateStore } from '../../../../src/stores/update.ts'
import { deliverDue } from '../../../events/webhooks/support/endpoints.ts'
import { answer, openReceiver } from '../../../events/webhooks/support/receiver.ts'
import { wallet } from '../../../support/app.ts'
import { completeByHand } from '../../../support/by-hand.ts'
import { byOperator, operator } from '../../../support/operator.ts'
import { patienceMs } from '../../../support/patience.ts'
import { openAuthenticator } from './authenticator.ts'
import { type Enrolled, enrolWith, inviteBy, openConsole, openInvitedStore } from './console.ts'
import { listRoutes } from './routes.ts'

export type Furnished = Awaited<ReturnType<typeof openFurnished>>

const storeName = 'Juniper & Pine'
const weekMs = 604_800_000

export async function openFurnished() {
  const console = await openConsole({
    listens: true,
    settings: {
      ...{ FIXED_RATES: 'EUR=0.86', ECB_RATES_URL: '', EXCHANGE_RATES_URL: '', SIGN_UP: 'approval' },
      ...{ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'farthing@pay.example' },
    },
  })
  const { farthing } = console
  const { ctx } = farthing
  const { store, token } = await openInvitedStore(console, { mode: 'live' })
  const { id } = store.store
  await updateStore(ctx, id, operator, { name: storeName, supportEmail: 'help@shop.example' }, ctx.now())
  const base = networks.find((each) => each.id === 'BASE_MAINNET')
  const [asset] = base?.assets ?? []
  assert(base && asset)
  const shop = { storeId: id, network: base.caip2, asset: asset.address, payTo: wallet, actor: operator }
  // The store is as old as its past: what came before the wallet was in use would not be its money.
  for (const table of ['wallets', 'stores'])
    await ctx.db.query(
      `update ${table} set created_at = created_at - interval '70 days' where '${id}' in (${table === 'stores' ? 'id' : 'store_id'})`,
    )
  await writeHistory(ctx, shop)

  const owner = await enrolWith(console, token, openAuthenticator(console.url, false))
  for (const [name, role] of [
    ['Max Mertens', 'manager'],
    ['Vera Lind', 'viewer'],
  ] as const)
    await enrolWith(console, await inviteBy(owner, id, { name, role }))
  await inviteBy(owner, id, { name: 'Devi Rao', role: 'developer' })
  await putAwayNews(owner, id)
  await ctx.db.query("update members set email = 'olga@shop.example' where name = 'Olga'")
  const limit = { ...byOperator, limit: null }
  await createKey(ctx, id, limit, { label: 'Till', scopes: ['checkouts:write'] }, ctx.now())

  const made: Checkout[] = []
  for (const [i, priceAmount] of ['12.40', '34.00', '19.50', '64.90'].entries())
    made.push(
      await store.create({ orderId: `${2001 + i}`, priceAmount, description: 'Espresso blend, 500 g' }),
    )
  await deliver()
  for (const { id: checkoutId } of made.slice(0, 2)) await completeByHand(farthing, checkoutId)
  const until = new Date(Date.now() + weekMs).toISOString()
  const wanted = { title: 'Grinder, second hand', priceAmount: '85.00', priceCurrency: 'EUR', until }
  const link = (await store.call('POST', '/api/v1/links', wanted)).json<Link>()
  await store.call('POST', '/api/v1/links', { ...wanted, title: 'Coffee for the street party', kind: 'many' })
  const refunded = await refund(made[1]?.id ?? assert.fail(), 17_000_000n)
  const part = await refund(made[0]?.id ?? assert.fail(), 2_400_000n)
  await ctx.db.query("update refunds set status = 'DECLARED', completed_at = clock() where id = $1", [
    part.refundId,
  ])
  while ((await numberEvents(ctx)) > 0 || (await bookDue(ctx)));
  while (await countRollups(ctx));

  const waiting = await openInvitedStore(console, { mode: 'live' })
  await updateStore(ctx, waiting.store.store.id, operator, { name: 'Corner Books' }, ctx.now())
  const ops = await enrolWith(console, waiting.token, openAuthenticator(console.url, false))
  const [{ id: operatorId } = assert.fail()] = await listStoreMembers(ctx.db, waiting.store.id)
  await setOperator(ctx, operator, operatorId, true, ctx.now())
  await putAwayNews(ops, waiting.store.id)
  await ctx.db.query("update stores set admission = 'waiting' where id = $1", [waiting.store.id])

  /** One receiver takes everything, one is out of order. Only test stores may have them on this machine. */
  async function deliver(): Promise<void> {
    const [good, bad] = [
      await openReceiver(),
      await openReceiver(answer(503, {}, 'The newsletter service is being moved.')),
    ]
    while ((await numberEvents(ctx)) > 0);
    const setMode = async (mode: string) => {
      await ctx.db.query('alter table stores disable trigger mode_is_kept')
      await ctx.db.query('update stores set mode = $2 where id = $1', [id, mode])
      await ctx.db.query('alter table stores enable trigger mode_is_kept')
    }
    await setMode('test')
    const endpoints: string[] = []
    for (const { url } of [good, bad])
      endpoints.push((await createEndpoint(ctx, id, operator, { url, types: [] }, ctx.now())).id)
    await setMode('live')
    made.push(await store.create({ orderId: '2005', priceAmount: '28.00' }))
    await setMode('test')
    await deliverDue(ctx)
    await setMode('live')
    for (const [i, { url }] of [good, bad].entries()) {
      const shown = `https://${i === 0 ? 'orders' : 'mailing'}.shop.example/farthing`
      await ctx.db.query('update webhook_endpoints set url = $2 where id = $1', [endpoints[i], shown])
      await ctx.db.query('update events set data = replace(data::text, $1, $2)::json where store_id = $3', [
        ...[url, shown, id],
      ])
    }
  }

  /** A part of a payment waits for a signature. */
  async function refund(checkoutId: string, amount: bigint) {
    await ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [id])
    const [credit = assert.fail()] = await ctx.db.query<{ paymentId: string }>(
      `update credits set pay_to = lower(pay_to), safe_at = clock(), finalized_at = clock(), witnessed_at = clock()
       where checkout_id = $1 returning payment_id as "paymentId"`,
      [checkoutId],
    )
    const requester = {
      actor: { type: 'member', id: 'mem_1', name: 'Olga' },
      mayChooseRecipient: false,
    } as const
    const asked = {
      amount,
      recipient: null,
      reason: 'The grinder came broken',
      way: 'signed',
    } as const
    const created = await createRefund(
      ctx,
      id,
      requester,
      { ...credit, ...asked, idempotency: null },
      ctx.now(),
    )
    return { refundId: created.id, ...credit }
  }

  /** The owner has asked to be mailed elsewhere, and has not opened the link yet. */
  async function askForEmail(): Promise<string> {
    const emailToken = newToken()
    await ctx.db.query(
      `insert into email_changes (member_id, token_hash, email, expires_at, day, links)
       select member_id, $2, 'olga@shop.example', clock() + interval '1 day', current_date, 1
       from memberships where store_id = $1 and role = 'owner' limit 1`,
      [id, hashToken(emailToken)],
    )
    return emailToken
  }

  return { ...console, store, owner, ops, waiting, screens: await listScreens() }

  /** Every route that answers with a page, with the parts of its path filled in from what the store has. */
  async function listScreens(): Promise<readonly Screen[]> {
    const one = async (sql: string) => (await ctx.db.query<{ id: string }>(sql))[0]?.id ?? ''
    const events = (await store.call('GET', '/api/v1/events?limit=100')).json<{ data: Event[] }>().data
    const parts: Readonly<Record<string, string>> = {
      storeId: id,
      id,
      checkoutId: await one(
        "select checkout_id as id from credits where disposition = 'late' order by included_at desc limit 1",
      ),
      paymentId: await one(
        `select payment_id as id from credits where disposition = 'unmatched' and pay_to = '${wallet.toLowerCase()}'
         order by included_at desc limit 1`,
      ),
      endpointId: await one("select id from webhook_endpoints where url like '%mailing%'"),
      deliveryId: await one(
        "select d.id from deliveries d join webhook_endpoints e on e.id = d.endpoint_id where e.url like '%mailing%' limit 1",
      ),
      eventId: events.at(-1)?.id ?? '',
      linkId: link.id,
      token: await one(`select stop_token as id from memberships where store_id = '${id}' limit 1`),
      walletId: await one(`select id from wallets where store_id = '${id}' limit 1`),
      changeId: await one(
        `select id from wallet_changes where store_id = '${id}' and made is not null limit 1`,
      ),
    }
    const ofRefund: typeof parts = { ...parts, ...refunded }
    const ofEmail: typeof parts = { ...parts, token: await askForEmail() }
    const partsOf = (path: string) =>
      path.includes('refund') ? ofRefund : path.includes('email') ? ofEmail : parts
    const screens: Screen[] = []
    for (const { method, path } of listRoutes(console.app)) {
      if (method !== 'GET' || /\/(live|assets\/.*|oidc\/.*|preview)$/.test(path)) continue
      const filled = path.replace(
        /:(\w+)/g,
        (_, part) => partsOf(path)[part] || assert.fail(`what is the ${part} of ${path}?`),
      )
      const by = path.startsWith('/operator') ? ops : owner
      const { statusCode, headers } = await by.browser.get(filled)
      if (statusCode === 303 || !/^text\/html/.test(String(headers['content-type']))) continue
      assert.equal(statusCode, 200, `${path}: ${statusCode}`)
      screens.push({ name: nameOf(path), path: filled, by })
    }
    assert(screens.length > 3)
    return screens
  }
}

export type Screen = {
  /** As in a file's name. */
  readonly name: string
  readonly path: string
  readonly by: Enrolled
}

function nameOf(path: string): string {
  const name = path
    .replace('/stores/:storeId', '')
    .replace(/:(\w+?)(Id)?(?=\/|$)/g, 'one')
    .replaceAll('/', '-')
    .replace(/^-+|-+$/g, '')
  return name || 'home'
}

/** A browser window in which this member is signed in. */
export async function openSignedIn(
  chromium: Chromium,
  { url }: Pick<Furnished, 'url'>,
  { browser }: Enrolled,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await chromium.newContext({ locale: 'en-US', ...options })
  context.setDefaultTimeout(patienceMs)
  const [name = '', value = ''] = browser.cookie.split('=')
  await context.addCookies([{ name, value, url }])
  return await context.newPage()
}

/** They know what happened to the store's wallets so far. */
async function putAwayNews({ browser, authenticator }: Enrolled, storeId: string): Promise<void> {
  const values = { storeId, until: new Date().toISOString() }
  const touch = await browser.confirm(authenticator, 'wallet.known', values)
  await browser.done(`/stores/${storeId}/wallets/seen`, { ...values, touch })
}
