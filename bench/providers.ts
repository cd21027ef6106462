/**
 * Payments within the limits of each provider: `npm run bench:providers`, or `-- --short` for two providers, ten
 * payments and a short downtime. `-- --only NAME` measures one. Policies are in server/test/chains/support/policies.ts.
 *
 * Each row is a deployment of its own with two providers of the same kind, which are proxies in front of one local
 * chain: anvil with a block every 200 ms, or the local Solana with a slot every 300 ms. Payers repeat a payment that is
 * answered 202 or 503, and sign again if their blockhash has expired. No payment may be refused for another reason, and
 * in the end each checkout is paid by one final credit.
 *
 * - paid: payments that completed, of those that were made five at a time.
 * - p99: how long a payer waited for a 200, from the first request; repeats: answers before it that were no 200.
 * - calls: to each provider per payment, including all other calls in that time.
 * - final: from the last payment until all are final. The chain makes a block final after eight; on Solana, 31 slots.
 * - start: until the first start accepts payments, with 600 unread blocks that are all final.
 * - downtime: after `work` was down, from its start until a payment has completed.
 * - reorg: after three blocks are replaced, until a payment has completed.
 * Absolute times from a busy machine are not comparable.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: { short: { type: 'boolean', default: false }, only: { type: 'string', default: '' } },
})
const run = new URL('../server/test/run.ts', import.meta.url).pathname
const { status } = spawnSync(process.execPath, [run, 'bench/providers-rows.ts'], {
  stdio: 'inherit',
  env: { ...process.env, SHORT: options.short ? '1' : '', ONLY: options.only },
})
process.exitCode = status ?? 1
