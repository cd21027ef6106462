/** What each database role may do, tried as that role. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { applyDecisions } from '../../src/checkouts/payments/apply-decisions.ts'
import { insertDecision, listOutcomes } from '../../src/checkouts/payments/request-decision.ts'
import { type Database, sqlState, type Transaction } from '../../src/database/db.ts'
import { scopeToStore } from '../../src/database/scope.ts'
import { eventTypes } from '../../src/http/api/event-types.ts'
import { newId } from '../../src/ids.ts'
import { openTestApp } from '../support/app.ts'
import { creditByHand } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { openStore } from '../support/store.ts'

const refused = '42501'
/** Whether PostgreSQL lets the role do this; nothing stays done. */
async function may(db: Database, work: (tx: Transaction) => Promise<unknown>): Promise<boolean> {
  const undo = new Error('undo')
  try {
    await db.transaction(async (tx) => {
      await work(tx)
      throw undo
    })
  } catch (error) {
    if (error === undo) return true
    if (sqlState(error) === refused) return false
    throw error
  }
  return assert.fail('it was committed')
}

type Column = { table: string; column: string; type: string; isGenerated: boolean }

async function listColumns(db: Database): Promise<Column[]> {
  return await db.query<Column>(
    `select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type,
       a.attgenerated <> '' or a.attidentity <> '' as "isGenerated"
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by c.relname, a.attnum`,
  )
}

/** The rights that docs/rights.md states, as `role verb table.column`. */
async function readDocumented(columns: readonly Column[]): Promise<Set<string>> {
  const text = await readFile(new URL('../../../docs/rights.md', import.meta.url), 'utf8')
  const stated = new Set<string>()
  for (const [, table = '', ...cells] of text.matchAll(/^\| `(\w+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$/gm)) {
    const all = columns.filter((each) => each.table === table).map(({ column }) => column)
    for (const [i, role] of (['serve', 'work', 'console', 'audit'] as const).entries()) {
      const rights = (cells[i] ?? '').matchAll(/(select|insert|update|delete)(?: \((all but )?([^)]*)\))?/g)
      for (const [, verb, isBut, list] of rights) {
        const named = list?.split(', ') ?? []
        const granted = list === undefined ? all : isBut ? all.filter((one) => !named.includes(one)) : named
        for (const column of granted) stated.add(`${role} ${verb} ${table}.${column}`)
      }
    }
  }
  return stated
}

/** One statement that needs exactly this right, and touches no row. */
function statementFor(verb: string, { table, column, type }: Column): string {
  if (verb === 'select') return `select ${column} from ${table} where false`
  if (verb === 'insert') return `insert into ${table} (${column}) select null::${type} where false`
  if (verb === 'update') return `update ${table} set ${column} = null where false`
  return `delete from ${table} where false`
}

const farthing = await openTestApp()
const { db } = farthing.ctx
const as = {
  serve: openAs('serve', farthing.databaseUrl),
  work: openAs('work', farthing.databaseUrl),
  console: openAs('console', farthing.databaseUrl),
  operator: openAs('operator', farthing.databaseUrl),
  audit: openAs('audit', farthing.databaseUrl),
}

/** Which of these statements PostgreSQL lets the role run. They are run on the server, to spare a round trip for each. */
async function tryAll(db: Database, statements: readonly string[]): Promise<boolean[]> {
  return await db.transaction(async (tx) => {
    await tx.query("select set_config('test.statements', $1, true)", [JSON.stringify(statements)])
    await tx.script(`do $$ declare each text; answers text := ''; begin
      for each in select json_array_elements_text(current_setting('test.statements')::json) loop
        begin execute each; answers := answers || 'y';
        exception when insufficient_privilege then answers := answers || 'n'; end;
      end loop;
      perform set_config('test.answers', answers, true);
    end $$`)
    const [row] = await tx.query<{ answers: string }>("select current_setting('test.answers') as answers")
    return Array.from(row?.answers ?? '', (answer) => answer === 'y')
  })
}

test('serve, work and the console may do to every column of every table exactly what the docs say', async (t) => {
  const columns = await listColumns(db)
  const documented = await readDocumented(columns)
  assert(columns.length > 200 && documented.size > 300)
  const rights = columns.flatMap((column) =>
    ['select', 'insert', 'update', 'delete']
      .filter((verb) => !column.isGenerated || verb === 'select' || verb === 'delete')
      .map((verb) => ({ verb, column })),
  )
  for (const role of ['serve', 'work', 'console', 'audit'] as const) {
    const answers = await tryAll(
      as[role],
      rights.map(({ verb, column }) => statementFor(verb, column)),
    )
    const allowed = rights
      .filter((_, i) => answers[i])
      .map(({ verb, column: { table, column } }) => `${role} ${verb} ${table}.${column}`)
    const stated = rights
      .map(({ verb, column: { table, column } }) => `${role} ${verb} ${table}.${column}`)
      .filter((right) => documented.has(right))
    assert.deepEqual(
      allowed.filter((right) => !stated.includes(right)),
      [],
      'allowed, and not in the docs',
    )
    assert.deepEqual(
      stated.filter((right) => !allowed.includes(right)),
      [],
      'in the docs, and refused',
    )
    t.diagnostic(`${role}: ${allowed.length} of ${rights.length} allowed`)
  }
})

/** What must stay out of reach whatever the docs come to say: see the security model. */
const forbidden: Readonly<Record<'serve' | 'work' | 'console' | 'audit', readonly string[]>> = {
  serve: [
    ...[
      'credits',
      'transactions',
      'transaction_calls',
      'broadcasts',
      'settlers',
      'payment_hints',
      'blocks',
    ].flatMap((table) => [`insert into ${table} default values`, `delete from ${table}`]),
    'update credits set disposition = disposition',
    'update settlers set next_nonce = next_nonce',
    'select bytes from broadcasts',
    "update checkouts set options = '[]'",
    'update decisions set outcome = null',
    'update refunds set recipient = wallet',
    'update refunds set amount = amount',
    'update address_requests set confirmed_at = now()',
    'update events set data = data',
    'delete from events',
    "insert into events (id, store_id, sequence, type, data, created_at) values ('evt_x', 'st_x', 1, 'checkout.created', '{}', now())",
    'update event_counters set last_sequence = 0',
    'select name from members',
    'insert into members default values',
    'delete from members',
    "update memberships set role = 'owner'",
    'select sealed from mails',
    ...['passkeys', 'sessions', 'challenges', 'identities'].flatMap((table) => [
      `select 1 from ${table}`,
      `insert into ${table} default values`,
      `delete from ${table}`,
    ]),
  ],
  work: [
    'update wallets set address = address',
    'insert into wallets default values',
    'insert into checkouts default values',
    "update checkouts set options = '[]'",
    'update stores set finality_policy = finality_policy',
    'select secret_hash from api_keys',
    'insert into api_keys default values',
    'delete from events',
    'update events set data = data',
    'insert into decisions default values',
    'select 1 from sessions',
    'select 1 from passkeys',
    'insert into sessions default values',
    'insert into audit_findings default values',
    'update audit_findings set resolved_at = now()',
    'update audit_days set credits = 0',
    'delete from audit_changes',
    'insert into audit_accepts default values',
  ],
  audit: [
    'insert into credits default values',
    'update credits set orphaned_at = null',
    'update checkouts set status = status',
    'delete from audit_findings',
    'select sender from credits',
    'select metadata from checkouts',
    'insert into audit_changes default values',
    'delete from audit_accepts',
    'select 1 from authorizations',
    'select 1 from settlers',
    'select 1 from members',
    'select 1 from events',
    "insert into schedules (name, run_at) values ('review', now() + interval '1 year')",
  ],
  console: [
    'insert into credits default values',
    'update credits set disposition = disposition',
    'select bytes from broadcasts',
    'select secret_hash from api_keys',
    'insert into movements default values',
    'select * from movements_due',
    'insert into movement_closings default values',
    'select * from api_keys',
    'update api_keys set secret_hash = secret_hash',
    'update deliveries set attempt = attempt',
    'delete from events',
    'update events set data = data',
  ],
}
const forbiddenToAll = [
  'update movements set amount = amount',
  'delete from movements',
  'truncate movements',
  'alter table movements disable row level security',
  'create table more (id text)',
  'alter table checkouts add column more text',
  'alter table checkouts disable row level security',
  'alter table checkouts disable trigger all',
  'drop table events',
  'truncate events',
  'create or replace function clock() returns timestamptz language sql as $$ select now() $$',
  'create role another',
  'set role farthing_owner',
  'set role farthing_operator',
  "set session_replication_role = 'replica'",
  'insert into schema_migrations default values',
  'update granted_rights set sql = sql',
  'select * from pg_authid',
  "copy checkouts to program 'true'",
]

test('what no taken process may do is refused to each', async () => {
  for (const role of ['serve', 'work', 'console', 'audit'] as const)
    for (const statement of [...forbidden[role], ...forbiddenToAll])
      assert.equal(await may(as[role], (tx) => tx.script(statement)), false, `${role}: ${statement}`)
  for (const statement of forbiddenToAll.filter((each) => each !== 'set role farthing_operator'))
    assert.equal(await may(as.operator, (tx) => tx.script(statement)), false, `operator: ${statement}`)
})

test('serve and the console write only the event types that are theirs; work writes all', async () => {
  const { id: storeId } = await openStore(farthing)
  const ofServe =
    /^(checkout\.(created|processing|canceled)|refund\.(requested|address_updated|declared|canceled)|link\.(created|updated|closed)|store\.updated|wallet\.(registered|updated|retired|refused)|key\..*|webhook_endpoint\.(created|updated|deleted|test))$/
  for (const type of eventTypes)
    for (const role of ['serve', 'work', 'console'] as const) {
      const isAllowed = await may(as[role], async (tx) => {
        await tx.query("select set_config('farthing.store', $1, true)", [storeId])
        await tx.query(
          "insert into events (id, store_id, type, data, created_at) values ($1, $2, $3, '{}', clock())",
          [newId('evt', '00', new Date()), storeId, type],
        )
      })
      const expected =
        role === 'work' ||
        (role === 'serve'
          ? ofServe.test(type)
          : /^(member\..*|checkout\.(created|canceled)|refund\.(requested|address_updated|declared|canceled)|link\.(created|updated|closed)|store\.(updated|approved|suspended|resumed)|wallet\.(confirmed|refused|undone|registered|updated|retired)|key\..*|webhook_endpoint\.(created|updated|deleted|test))$/.test(
              type,
            ))
      assert.equal(isAllowed, expected, `${role} ${type}`)
    }
})

test('serve makes checkouts OPEN, and moves them only from OPEN to PROCESSING or CANCELED; work moves them anywhere', async () => {
  const shop = await openStore(farthing)
  const { id } = await shop.create()
  const statuses = ['OPEN', 'PROCESSING', 'COMPLETED', 'EXPIRED', 'CANCELED']
  for (const from of statuses) {
    await db.query('update checkouts set status = $2 where id = $1', [id, from])
    for (const to of statuses)
      for (const role of ['serve', 'work'] as const)
        assert.equal(
          await may(as[role], (tx) => tx.query('update checkouts set status = $2 where id = $1', [id, to])),
          role === 'work' || from === to || (from === 'OPEN' && /^(PROCESSING|CANCELED)$/.test(to)),
          `${role} ${from} ${to}`,
        )
  }
  for (const status of statuses)
    assert.equal(
      await may(as.serve, (tx) =>
        tx.query(
          `insert into checkouts select ($3::text || substr(id, 4))::text, store_id, order_id, price_amount, price_currency,
             success_redirect_url, options, rate, finality, $2, 1, created_at, expires_at, 0, cancel_url
           from checkouts where id = $1`,
          [id, status, 'cx_'],
        ),
      ),
      status === 'OPEN',
      status,
    )
})

test('serve asks for refunds, has them signed, declared or canceled, and never says that money went back or cannot go', async () => {
  const shop = await openStore(farthing)
  const { id } = await shop.create()
  const paymentId = await creditByHand(farthing, id)
  await db.query(
    `with total as (
       insert into refund_totals (network, asset, identity, payment_id, store_id, amount, reserved)
       select network, asset, payment_id, payment_id, $2, amount, amount from credits where payment_id = $1
       returning *
     )
     insert into refunds (id, store_id, payment_id, network, asset, identity, wallet, amount, way, status, version, actor,
       created_at)
     select 'rf_1', store_id, payment_id, network, asset, identity, '0x1', amount, 'signed', 'REQUESTED', 1, '{}', clock()
     from total`,
    [paymentId, shop.id],
  )
  const statuses = ['REQUESTED', 'SIGNED', 'SENT', 'COMPLETED', 'DECLARED', 'FAILED', 'CANCELED']
  const move = (to: Database | Transaction, status: string) =>
    to.query(
      `update refunds set status = $1, ended_at = case when $1 in ('FAILED', 'CANCELED') then clock() end
       where id = 'rf_1'`,
      [status],
    )
  for (const from of statuses) {
    await move(db, from)
    for (const to of statuses)
      for (const role of ['serve', 'work'] as const)
        assert.equal(
          await may(as[role], (tx) => move(tx, to)),
          role === 'work' ||
            from === to ||
            (from === 'REQUESTED' && /^(SIGNED|SENT|DECLARED|CANCELED)$/.test(to)),
          `${role} ${from} ${to}`,
        )
  }
  await db.query("update refunds set slot = 0, nonce = '0x0', recipient = '0x2' where id = 'rf_1'")
  for (const role of ['serve', 'work'] as const)
    assert(
      !(await may(as[role], (tx) => tx.query("update refunds set recipient = '0x3' where id = 'rf_1'"))),
      role,
    )
})

test('the console reads and writes the rows of the store that its transaction names, and no other’s', async () => {
  const [mine, other] = [await openStore(farthing), await openStore(farthing)]
  const scoped = scopeToStore(as.console, mine.id)
  const write = (to: Database | Transaction, storeId: string) =>
    to.query(
      "insert into events (id, store_id, type, data, created_at) values ($1, $2, 'member.joined', '{}', clock())",
      [newId('evt', '00', new Date()), storeId],
    )
  await write(scoped, mine.id)
  assert.equal(await may(scoped, (tx) => write(tx, other.id)), false)
  assert.equal(await may(as.console, (tx) => write(tx, mine.id)), false)
  const unprotected = await db.query<{ name: string }>(
    `select relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'store_id'
     where c.relkind = 'r' and has_any_column_privilege('farthing_console', c.oid, 'select, insert, update')
       and not (relrowsecurity and exists (select 1 from pg_policy p where p.polrelid = c.oid and not p.polpermissive
         and p.polroles = array['farthing_console'::regrole::oid] and p.polcmd = '*'))
     order by relname`,
  )
  assert.deepEqual(
    unprotected.map(({ name }) => name),
    ['event_counters', 'invitations', 'memberships', 'refund_totals'],
  )
})

test('a refund that was found after a restore is seen in the console by the store that paid it, and can only become its own', async () => {
  const [mine, other] = [
    await openStore(farthing, { evmWallet: newPayer().address }),
    await openStore(farthing, { evmWallet: newPayer().address }),
  ]
  const nonce = `0x66746872${'0'.repeat(56)}`
  await db.query(
    `insert into authorizations (network, asset, payer, nonce, state, pay_to, amount, valid_after, valid_before, signature,
       claimed_at)
     select 'eip155:1', '0x1', pay_to, $2, 'sent', '0x2', 1, 0, 0, '', clock() from wallets where store_id = any($1)`,
    [[mine.id, other.id], nonce],
  )
  const scoped = scopeToStore(as.console, mine.id)
  const seen = await scoped.query('select payer from authorizations where nonce = $1', [nonce])
  assert.deepEqual(seen, await db.query('select pay_to as payer from wallets where store_id = $1', [mine.id]))
  const give = (storeId: string | null) =>
    may(scoped, (tx) =>
      tx.query('update authorizations set store_id = $1 where nonce = $2', [storeId, nonce]),
    )
  assert.deepEqual([await give(mine.id), await give(other.id), await give(null)], [true, false, false])
})

test('a decision that a taken serve forges for another store’s payment is refused by work, and changes nothing', async () => {
  const victim = await openStore(farthing, { evmWallet: newPayer().address })
  const thief = await openStore(farthing, { evmWallet: newPayer().address })
  const paymentId = await creditByHand(farthing, (await victim.create()).id)
  const checkoutId = (await thief.create()).id
  const before = await db.query('select * from credits where payment_id = $1', [paymentId])
  const actor = { type: 'key', id: 'forged', name: null } as const
  const forged = [
    { kind: 'accept', storeId: thief.store.id, checkoutId },
    { kind: 'dismiss', storeId: thief.store.id, checkoutId: null },
    { kind: 'accept', storeId: victim.store.id, checkoutId },
  ] as const
  const ids = await Promise.all(
    forged.map((each) =>
      insertDecision(
        as.serve,
        {
          ...each,
          note: null,
          id: newId('dec', '00', new Date()),
          paymentId,
          actor,
          createdAt: new Date(),
        },
        forged.length,
      ),
    ),
  )
  assert.equal(await applyDecisions({ ...farthing.ctx, db: as.work }, new Date()), forged.length)
  const waited = ids.filter((id) => id !== null)
  assert.equal(waited.length, forged.length)
  const outcomes = await listOutcomes(as.serve, waited)
  assert.deepEqual(outcomes.map(({ id }) => id).sort(), waited.toSorted())
  for (const { outcome } of outcomes) assert('problem' in outcome && outcome.problem.code === 'not_found')
  assert.deepEqual(await db.query('select * from credits where payment_id = $1', [paymentId]), before)
})
