/**
 * Text that stores, their members, buyers and receivers of webhooks supply is shown to a store's members on the console's
 * origin. It is written straight into the database, past every check, because no screen may depend on those.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostileStrings, skeletonOf, storable, strings } from '../page/support/hostile-strings.ts'
import { openFurnished } from './support/furnished.ts'

const stringsAtOnce = 500
/** Every column that a screen shows, and that somebody outside can fill. */
const columns: Readonly<Record<string, readonly string[]>> = {
  checkouts: ['order_id', 'description'],
  stores: [
    'name',
    'support_email',
    'support_url',
    'legal_name',
    'legal_address',
    'tax_id',
    'suspended_reason',
  ],
  members: ['name', 'email'],
  invitations: ['name', 'email'],
  sessions: ['browser'],
  passkeys: ['name'],
  api_keys: ['label'],
  webhook_endpoints: ['url'],
  delivery_attempts: ['answer', 'error'],
  payment_notes: ['note'],
  decisions: ['note'],
  refunds: ['reason', 'declared', 'failure'],
}

const { screens, farthing, store } = await openFurnished()
const { db } = farthing.ctx

await db.query(`insert into payment_notes (payment_id, store_id, note, actor, noted_at)
  select payment_id, store_id, 'plain', '{"type":"member","id":"mem_1","name":"plain"}', clock() from credits
  where store_id = '${store.id}' order by included_at desc limit 5`)

// A screen says when the next try is, until that time has come.
await db.query("update deliveries set run_at = clock() + interval '1 day' where finished_at is null")
await db.query(
  "update webhook_endpoints set held_until = clock() + interval '1 day' where held_until is not null",
)

/** Checks of length and form, and indexes of what is longer than an index takes. */
async function dropChecks(): Promise<void> {
  for (const [table, names] of Object.entries(columns)) {
    const rows = await db.query<{ name: string }>(
      `select conname as name from pg_constraint where conrelid = $1::regclass and contype = 'c'`,
      [table],
    )
    for (const { name } of rows) await db.query(`alter table ${table} drop constraint "${name}"`)
    const indexes = await db.query<{ name: string }>(
      `select distinct c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
       where i.indrelid = $1::regclass and not i.indisprimary and a.attname = any($2)`,
      [table, names],
    )
    for (const { name } of indexes) await db.query(`drop index "${name}"`)
  }
}

/** What is parsed before it is stored is an address, whatever else it is. */
function addressOf(text: string): string {
  const address = `https://shop.example/${text.replace(/[\s\p{Cc}\\]/gu, '')}`
  return URL.canParse(address) ? address : 'https://shop.example/'
}

async function write(text: string): Promise<void> {
  for (const [table, names] of Object.entries(columns))
    for (const name of names)
      await db.query(`update ${table} set ${name} = $1 where ${name} is not null`, [
        name.endsWith('url') ? addressOf(text) : text,
      ])
  await db.query(
    `update refunds set actor = json_build_object('type', 'member', 'id', 'mem_1', 'name', $1::text)`,
    [text],
  )
  const metadata = JSON.stringify({ [text.slice(0, 40)]: text })
  await db.query('update checkouts set metadata = $1', [metadata])
  await db.query(
    `update events set actor = json_build_object('type', 'member', 'id', 'mem_1', 'name', $1::text) where actor is not null`,
    [text],
  )
}

async function read(path: string, by: (typeof screens)[number]['by']): Promise<string> {
  const { statusCode, body } = await by.browser.get(path)
  assert.equal(statusCode, 200, path)
  return body
}

test('none of 2,000 hostile strings, in any field, adds or changes an element of any screen', async () => {
  await dropChecks()
  await write('plain')
  // Queues, chains and the doctor show ages and numbers, which change by themselves, and nobody's text.
  const shown = screens.filter(
    ({ name }) => !/^(sign-in|sign-up|enrol|operator-(queues|chains|settlers|doctor))/.test(name),
  )
  const plain = new Map<string, string>()
  for (const { name, path, by } of shown) plain.set(name, skeletonOf(await read(path, by)))
  let seen = 0
  let visible = 0
  for (let from = 0; from < hostileStrings; from += stringsAtOnce) {
    const text = storable(strings.slice(from, from + stringsAtOnce).join(' '))
    await write(text)
    for (const { name, path, by } of shown) {
      const page = await read(path, by)
      const [mine, expected] = [skeletonOf(page), plain.get(name) ?? '']
      const at = [...mine].findIndex((letter, i) => letter !== expected[i])
      assert(
        mine === expected,
        `${name}, strings from ${from}: ${mine.slice(at - 150, at + 150)} / ${expected.slice(at, at + 150)}`,
      )
      assert(page.isWellFormed(), name)
      if (page.includes('pwned=1')) visible++
      seen++
    }
  }
  assert.equal(seen, (shown.length * hostileStrings) / stringsAtOnce)
  // The name of the store is on every screen.
  assert(visible > seen / 2, `${visible} of ${seen} show anything of it`)
})
