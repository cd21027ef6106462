/**
 * How long a buyer waits: `npm run bench:wait`, or `-- --short` for a few payments.
 *
 * Two providers answer after 150 ms (`--latency`), half of it each way, in front of a local chain with a block every
 * 200 ms. Payers pay one at a time, and then five at a time. The time runs from the request with the signed
 * authorization to its answer that the checkout is paid, in these parts:
 *
 * - verify: until the payment is checked against the chain, and claimed.
 * - queue: until it is in a transaction whose signed bytes are committed.
 * - send: until the first provider has the transaction.
 * - mined: until it is in a block.
 * - seen: until the follower has found it there, and the checkout is COMPLETED.
 * - answered: until the payer has the answer.
 *
 * Times are of this machine, so only compare those of the same one. What must not grow is how often providers are asked
 * one after another, which `round-trips.test.ts` counts.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { whole } from './figures.ts'

const { values: options } = parseArgs({
  options: { short: { type: 'boolean', default: false }, latency: { type: 'string', default: '150' } },
})
const latencyMs = whole('latency', options.latency, 0, 2_000)
const run = new URL('../server/test/run.ts', import.meta.url).pathname
const { status } = spawnSync(process.execPath, [run, 'bench/wait-rows.ts'], {
  stdio: 'inherit',
  env: { ...process.env, SHORT: options.short ? '1' : '', LATENCY_MS: `${latencyMs}` },
})
process.exitCode = status ?? 1
