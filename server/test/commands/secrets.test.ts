/** Sealed webhook secrets, from the operator's side: making keys, rotating them while everything runs, losing nothing. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { verifyWebhook } from '@farthing/sdk/webhooks'
import { examine } from '../../src/commands/doctor.ts'
import { secretsCommand } from '../../src/commands/secrets.ts'
import type { Secret } from '../../src/events/webhooks/endpoint.ts'
import { countByKey } from '../../src/events/webhooks/reseal.ts'
import { openSecret } from '../../src/events/webhooks/seal-secrets.ts'
import type { EndpointId } from '../../src/ids.ts'
import { createKeyFile, readSecretsKeys } from '../../src/secrets/key-file.ts'
import { deliverDue, openHookShop, openLocalApp } from '../events/webhooks/support/endpoints.ts'
import { openReceiver } from '../events/webhooks/support/receiver.ts'
import { atEnd } from '../support/at-end.ts'
import { until } from '../support/until.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname
const folder = await mkdtemp(join(tmpdir(), 'farthing-secrets-'))
atEnd(() => rm(folder, { recursive: true, force: true }))
const file = join(folder, 'secrets.keys')
const makeKeyLine = async () => {
  const made = join(folder, `${Math.random()}`)
  assert.equal(await createKeyFile(made), null)
  return await readFile(made, 'utf8')
}
const [first, second] = [await makeKeyLine(), await makeKeyLine()]
const idOf = (line: string) => line.split(' ')[0] ?? ''

await replaceFile(first)
const farthing = await openLocalApp({ SECRETS_KEY_FILE: file })
const { ctx } = farthing
const environment = {
  PATH: process.env.PATH ?? '',
  DATABASE_URL: farthing.databaseUrl,
  BASE_URL: 'https://farthing.example',
}

/** Endpoints from before any key was set, which nothing is delivered to. */
async function insertUnsealed(from: number, to: number): Promise<EndpointId[]> {
  const { store } = await openHookShop(farthing)
  const rows = await ctx.db.query<{ id: EndpointId }>(
    `insert into webhook_endpoints (id, store_id, url, secrets, created_at, deleted_at, disabled_at, disabled_reason)
     select 'we_00' || lpad(i::text, 24, '0'), $1, 'https://shop.example/' || i,
       jsonb_build_array(jsonb_build_object('secret', 'whsec_' || i, 'expiresAt', null)), clock(),
       clock() - interval '2 days', clock(), 'store'
     from generate_series($2::int, $3::int) i returning id`,
    [store.id, from, to],
  )
  return rows.map(({ id }) => id)
}

/** What every stored secret opens to. */
async function openAll(): Promise<Map<string, string[]>> {
  const keys = readSecretsKeys(file)
  const rows = await ctx.db.query<{ id: EndpointId; secrets: Secret[] }>(
    'select id, secrets from webhook_endpoints',
  )
  return new Map(rows.map(({ id, secrets }) => [id, secrets.map((one) => openSecret(keys, id, one))]))
}

/** In one step, as an operator should: a process must not read half a file. */
async function replaceFile(text: string): Promise<void> {
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}

test('secrets create makes a file for its owner alone, and never overwrites one', async () => {
  const made = join(folder, 'made.keys')
  const run = () => secretsCommand(ctx, ['create'], { out: made })
  assert.match(await run(), /only its owner can read.*SECRETS_KEY_FILE=/s)
  assert.equal((await stat(made)).mode & 0o777, 0o600)
  const before = await readFile(made, 'utf8')
  assert.equal(readSecretsKeys(made).length, 1)
  await assert.rejects(run, /already exists. Nothing was changed/)
  assert.equal(await readFile(made, 'utf8'), before)
})

test('a file without a key, with a damaged one or with one id twice is refused, and says how to make one', async () => {
  const wrong = join(folder, 'wrong.keys')
  for (const text of ['', '# none\n', `${first}${first}`, first.slice(0, -3), `${first}\nrubbish`]) {
    await writeFile(wrong, text)
    assert.throws(
      () => readSecretsKeys(wrong),
      /^ConfigError: SECRETS_KEY_FILE .* secrets create --out FILE$/,
    )
  }
  assert.throws(() => readSecretsKeys(join(folder, 'missing')), /SECRETS_KEY_FILE cannot be read: ENOENT/)
})

test('serve and work refuse to run on a live network without a key, and say what to do', async () => {
  const env = {
    ...environment,
    ...{ PORT: '0', OPERATIONS_PORT: '0', NETWORKS: 'BASE_MAINNET', SECRETS_KEY_FILE: '' },
  }
  const refusal = /SECRETS_KEY_FILE is required, because BASE_MAINNET .* secrets create --out FILE/
  await Promise.all(
    ['serve', 'work'].map((command) =>
      assert.rejects(promisify(execFile)(process.execPath, [main, command], { env }), refusal),
    ),
  )
  const findings = await examine({ ...ctx, config: { ...ctx.config, secretsKeyFile: '' } }, async () => [])
  const found = findings.find(({ what }) => what === 'webhook secrets')
  assert.match(`${found?.says} ${found?.fix}`, /live network Make a key, .*secrets create/)
})

test('keys are rotated while deliveries are signed and secrets rolled, and every delivery verifies', async () => {
  await insertUnsealed(1, 250)
  const receiver = await openReceiver()
  const shop = await openHookShop(farthing)
  const known = new Map<string, string[]>()
  for (let i = 0; i < 6; i++) {
    const { id, secret } = await shop.register({ url: `${receiver.url}/${i}`, types: ['checkout.created'] })
    known.set(`/${i}`, [id, secret])
  }
  let isRotating = true
  let rolls = 0
  const roll = async () => {
    while (isRotating) {
      const told = known.get(`/${rolls++ % 6}`)
      assert(told)
      const [id] = told
      const { statusCode, body } = await shop.call('POST', `/api/v1/webhook-endpoints/${id}/roll-secret`, {})
      assert.equal(statusCode, 200, body)
      told.push(JSON.parse(body).secret)
    }
  }
  const deliver = async () => {
    while (isRotating) {
      await shop.create()
      await deliverDue(ctx)
    }
  }
  const rotate = async () => {
    for (let round = 0; round < 4; round++) {
      await replaceFile(round % 2 === 0 ? second + first : first + second)
      assert.match(await secretsCommand(ctx, ['rotate'], {}), /^Sealed the secrets of \d+ endpoints/)
    }
    isRotating = false
  }
  await Promise.all([roll(), deliver(), rotate()])
  await deliverDue(ctx)
  assert(receiver.received.length > 12 && rolls > 6, `${receiver.received.length} deliveries, ${rolls} rolls`)
  for (const received of receiver.received) {
    const [, ...secrets] = known.get(received.path) ?? []
    await verifyWebhook({ ...received, secrets })
  }
  const pending = await ctx.db.query("select 1 as one from deliveries where state = 'pending'")
  assert.deepEqual(pending, [])

  // The last round made the first key the first again: now the other can go.
  const says = await secretsCommand(ctx, ['rotate'], {})
  assert.match(says, new RegExp(`No secret needs another key: .*, ${idOf(second)} can be removed`))
  await replaceFile(first)
  const opened = await openAll()
  for (const [id, ...secrets] of known.values()) assert.equal(opened.get(id ?? '')?.[0], secrets.at(-1))
  assert.deepEqual(await countByKey(ctx.db), [{ keyId: idOf(first), endpoints: opened.size }])
})

test('a rotation killed in the middle leaves every secret openable, and the next one finishes it', async () => {
  const ids = await insertUnsealed(251, 500)
  const before = await openAll()
  await replaceFile(second + first)
  const env = { ...environment, SECRETS_KEY_FILE: file }
  await ctx.db.transaction(async (tx) => {
    // On a busy machine a process starts more slowly than a transaction may be idle.
    await tx.query('set local idle_in_transaction_session_timeout = 0')
    // A rotation waits for this row.
    await tx.query('select id from webhook_endpoints where id = $1 for no key update', [ids[150]])
    const rotation = spawn(process.execPath, [main, 'secrets', 'rotate'], { env, stdio: 'ignore' })
    const ended = once(rotation, 'exit')
    const done = async () => (await countByKey(ctx.db)).find(({ keyId }) => keyId === idOf(second))
    await until('the first batch is sealed', async () => ((await done())?.endpoints ?? 0) >= 100)
    rotation.kill('SIGKILL')
    await ended
    assert(((await done())?.endpoints ?? 0) < before.size)
  })
  assert.deepEqual(await openAll(), before)
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'secrets', 'rotate'], { env })
  assert.match(
    stdout,
    new RegExp(`^Sealed the secrets of \\d+ endpoints with key ${idOf(second)}. No secret needs another`),
  )
  assert.deepEqual(await openAll(), before)
})

test('a secret moved to another endpoint signs nothing, and neither does one whose key is gone; both are reported', async () => {
  await replaceFile(second + first)
  const receiver = await openReceiver()
  const app = await openLocalApp({ SECRETS_KEY_FILE: file, LOG_LEVEL: 'error' })
  const [victim, thief] = [await openHookShop(app), await openHookShop(app)]
  const { id } = await victim.register({ url: `${receiver.url}/victim`, types: ['checkout.created'] })
  const own = await thief.register({ url: `${receiver.url}/thief`, types: ['checkout.created'] })
  await app.ctx.db.query(
    'update webhook_endpoints set secrets = (select secrets from webhook_endpoints where id = $1) where id = $2',
    [id, own.id],
  )
  await thief.create()
  await deliverDue(app.ctx)
  await replaceFile(first)
  await victim.create()
  await deliverDue(app.ctx)
  assert.deepEqual(receiver.received, [])
  const reasons = app.logged.map(({ msg, err }) => `${msg}: ${(err as Error).message}`)
  assert.match(reasons[0] ?? '', new RegExp(`could not sign a delivery.*${own.id} cannot be opened .* moved`))
  assert.match(
    reasons[1] ?? '',
    new RegExp(`${id} is sealed with key ${idOf(second)}, which SECRETS_KEY_FILE lacks`),
  )
  const found = (await examine(app.ctx, async () => [])).find(({ what }) => what === 'webhook secrets')
  assert.match(`${found?.says} ${found?.fix}`, new RegExp(`missing: ${idOf(second)} Put them back into`))
})
