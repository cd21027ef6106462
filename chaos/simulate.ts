/**
 * Runs simulated payment histories: `npm run chaos:simulate -- --histories 1000000 --seed 1`, or with `--refunds`
 * histories of refunds. simulation/history.ts and simulation/refunds/history.ts say what is modelled and what is not. The
 * last line is JSON. A failing seed is printed; run it alone with `--histories 1 --seed SEED`.
 */
import { parseArgs } from 'node:util'
import { runHistory } from './simulation/history.ts'
import { runRefunds } from './simulation/refunds/history.ts'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    refunds: { type: 'boolean', default: false },
  },
})
const histories = Number.parseInt(values.histories, 10)
const first = Number.parseInt(values.seed, 10)
const run = values.refunds ? runRefunds : runHistory
const startedAt = performance.now()
let violations = 0
for (let i = 0; i < histories; i++) {
  const wrong = run(first + i)
  if (wrong.length > 0) {
    violations++
    if (violations <= 20) process.stdout.write(`seed ${first + i}: ${wrong.join('; ')}\n`)
  }
  if ((i + 1) % 50_000 === 0) process.stdout.write(`${i + 1} histories, ${violations} violations\n`)
}
const seconds = Math.round(performance.now() - startedAt) / 1_000
process.stdout.write(
  `${JSON.stringify({ histories, seed: first, violations, seconds, perSecond: Math.round(histories / seconds) })}\n`,
)
process.exitCode = violations > 0 ? 1 : 0
