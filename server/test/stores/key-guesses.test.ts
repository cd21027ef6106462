/** Guessed API keys, close to valid ones and far from them, and how long a refusal takes. FULL=1: a million of each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Problem } from '../../src/problems.ts'
import { createKey, parseKey, revokeKey } from '../../src/stores/api-keys.ts'
import { openAuthenticator } from '../../src/stores/authenticate.ts'
import { openTestApp } from '../support/app.ts'
import { compareTimes, leakT } from '../support/compare-times.ts'
import { openCount, runs } from '../support/full.ts'
import { byOperator } from '../support/operator.ts'
import { assertProblem, openStore, send } from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const { authenticate } = openAuthenticator(ctx)
const live = await openStore(farthing)
const revoked = await createKey(ctx, live.store.id, byOperator, {}, new Date())
await revokeKey(ctx, null, byOperator, revoked.key.id, new Date())
const right = [live.key, (await openStore(farthing, { mode: 'test' })).key]

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const anyChar = fc.oneof(fc.constantFrom(...alphabet, ...'ilouAZ_-, \n\0'), fc.string({ minLength: 1 }))
const anyKey = fc.constantFrom(...right, revoked.text)
/** The guesses of an attacker who has seen parts of keys, or who hopes for a careless comparison. */
const guess = fc.oneof(
  // One character changed, removed or inserted anywhere.
  fc
    .tuple(anyKey, fc.nat(80), fc.constantFrom(0, 1), anyChar)
    .map(([key, at, taken, put]) => key.slice(0, at) + put + key.slice(at + taken)),
  fc.tuple(anyKey, fc.nat(80)).map(([key, at]) => key.slice(0, at)),
  // Parts of several keys combined.
  fc.tuple(anyKey, anyKey, anyKey).map(([a, b, c]) => {
    const [mode, id, secret] = [a.split('_')[1], b.split('_')[2], c.split('_')[3]]
    return `sk_${mode}_${id}_${secret}`
  }),
  // A correct prefix of the secret, of any length, with a random rest.
  fc
    .tuple(
      anyKey,
      fc.nat(51),
      fc.string({ unit: fc.constantFrom(...alphabet), minLength: 52, maxLength: 52 }),
    )
    .map(([key, kept, rest]) => key.slice(0, -52 + kept) + rest.slice(kept)),
  fc.tuple(anyKey, anyKey, fc.constantFrom(',', ', ', ' ', '\n', '')).map(([a, b, by]) => a + by + b),
  anyKey.map((key) => key.toUpperCase()),
  fc.constant(revoked.text),
  fc.string(),
)

/** Has the form of a key of another cell, which its tag alone tells. */
function isElsewhere(key: string): boolean {
  const parsed = parseKey(key)
  return parsed !== null && !parsed.id.startsWith('00')
}

/** Whether the authenticator that every request uses accepts a key. */
async function opens(key: string): Promise<boolean> {
  try {
    await authenticate(key, () => {})
    return true
  } catch (error) {
    const code = isElsewhere(key) ? 'wrong_cell' : 'invalid_api_key'
    assert(error instanceof Problem && error.code === code, String(error))
    return false
  }
}

test('only valid keys are accepted among any number of guesses', async (t) => {
  const count = openCount('guesses')
  await fc.assert(
    fc.asyncProperty(guess, async (key) => {
      count.add()
      if (right.includes(key)) count.add('right')
      assert.equal(await opens(key), right.includes(key))
    }),
    runs(5_000, 1_000_000),
  )
  count.say(t)
  for (const key of right) assert(await opens(key))
})

test('the application rejects all guesses that fit in a header with the same answer, unless they name another cell', async () => {
  const refusals = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      guess.filter((key) => /^[\x21-\x7e]*$/.test(key) && !right.includes(key)),
      async (key) => {
        const answer = await send(farthing.app, 'GET', '/api/v1/checkouts', undefined, { 'x-api-key': key })
        if (isElsewhere(key)) return void assertProblem(answer, 421, 'wrong_cell')
        const { requestId, ...rest } = assertProblem(answer, 401, 'invalid_api_key')
        refusals.add(JSON.stringify(rest))
      },
    ),
    runs(300, 20_000),
  )
  assert.equal(refusals.size, 1)
})

test('the time that a refusal takes does not reveal how much of a secret was correct', async (t) => {
  const { key } = live
  const last = key.endsWith('0') ? '1' : '0'
  const wrongAtEnd = key.slice(0, -1) + last
  const wrongAtStart = key.slice(0, -52) + (key.at(-52) === '0' ? '1' : '0') + key.slice(-51)
  const pairs = runs(20_000, 1_000_000).numRuns / 2
  const found = await compareTimes(pairs, (isFirst) => opens(isFirst ? wrongAtStart : wrongAtEnd))
  t.diagnostic(JSON.stringify({ refusals: pairs * 2, t: Math.round(found * 100) / 100 }))
  assert(Math.abs(found) < leakT, `t = ${found}`)
})

test('the same measurement detects a comparison that stops at the first difference', async () => {
  const secret = Buffer.alloc(52, 7)
  const early = Buffer.from(secret).fill(1, 0, 1)
  const late = Buffer.from(secret).fill(1, 51)
  const careless = async (guessed: Buffer) => {
    for (let i = 0; i < 52; i++) if (slowly(secret[i]) !== slowly(guessed[i])) return false
    return true
  }
  const found = await compareTimes(5_000, (isFirst) => careless(isFirst ? early : late))
  assert(Math.abs(found) > leakT, `t = ${found}`)
})

/** Enough work to be measurable with a clock that is read in JavaScript. */
function slowly(value: number | undefined): number {
  let sum = value ?? 0
  for (let i = 0; i < 50; i++) sum = (sum * 31 + i) % 65_521
  return sum
}
