/**
 * What nodes are asked for, and what that costs: `npm run bench:idle` takes 20 minutes. `-- --short` takes five, but some
 * calls are made every ten minutes, so its idle month is not exact. `-- --only evm` or `svm` measures one family.
 *
 * Each family has two providers: two proxies that count, in front of a local chain with the real one's blocks: every
 * 200 ms on Base, slots as long as Solana's. Figures are of the provider that was asked for more.
 *
 * - callsPerMonthIdle: calls while nobody looks at a checkout, for 30 days.
 * - callsPerMinuteAwake: calls per minute in the five minutes after somebody looked at a payable checkout. Only on Base.
 * - callsPerPayment: calls from the signed request until it is paid. On Solana, from the request for the terms until it is
 *   final. What is asked anyway at that time is included.
 *
 * The table says which part of a free plan an idle month uses, and for how many hours awake, or payments on Solana, the
 * rest is enough (server/src/chains/evm/costs.ts, svm/costs.ts). Unless it is short, the exit code is 1 if a
 * figure is above its limit.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { evmCosts } from '../server/src/chains/evm/costs.ts'
import { type Plan, priceOf } from '../server/src/chains/plans.ts'
import { svmCosts } from '../server/src/chains/svm/costs.ts'
import { round, say } from './figures.ts'

export type Figures = {
  readonly callsPerMonthIdle: number
  readonly callsPerPayment: number
  readonly callsPerMinuteAwake?: number
  /** The calls of an idle month, of a minute awake and of a payment, by method. */
  readonly methods: Readonly<Record<string, number>>
  readonly methodsAwake?: Readonly<Record<string, number>>
  readonly methodsPerPayment: Readonly<Record<string, number>>
}

const limits = {
  evm: { callsPerMonthIdle: 300_000, callsPerPayment: 30 },
  svm: { callsPerMonthIdle: 500_000, callsPerPayment: 30 },
} as const
type Family = keyof typeof limits
const plansOf = { evm: evmCosts.plans, svm: svmCosts.plans }

const { values: options } = parseArgs({
  options: { short: { type: 'boolean', default: false }, only: { type: 'string', default: '' } },
})

/** Each in a process of its own, whose last line is JSON. */
function measure(family: Family): Figures {
  const path = (name: string) => new URL(name, import.meta.url).pathname
  const short = options.short ? ['--short'] : []
  const command =
    family === 'evm' ? [path('../server/test/run.ts'), 'bench/idle-evm.ts'] : [path('idle-svm.ts'), ...short]
  const { stdout } = spawnSync(process.execPath, command, {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    env: { ...process.env, SHORT: options.short ? '1' : '' },
  })
  const line = stdout.split('\n').findLast((text) => text.startsWith('{"callsPerMonthIdle"'))
  if (line === undefined) throw new Error(`nothing was measured:\n${stdout}`)
  return JSON.parse(line)
}

function describe({ methods, methodsAwake, methodsPerPayment }: Figures, plan: Plan): string {
  const idle = priceOf(methods, plan)
  const rest = Math.max(0, plan.unitsPerMonth - idle)
  const left = methodsAwake
    ? `${Math.floor(rest / priceOf(methodsAwake, plan) / 60)} hours awake`
    : `${Math.floor(rest / priceOf(methodsPerPayment, plan))} payments`
  const share = round((100 * idle) / plan.unitsPerMonth, 0)
  return `${plan.provider}: ${round(idle, 0)} of ${plan.unitsPerMonth} ${plan.unit} (${share} %), and ${left} (${plan.source}, ${plan.readIn})`
}

const families: Partial<Record<Family, Omit<Figures, 'methods' | 'methodsAwake' | 'methodsPerPayment'>>> = {}
let isGood = true
for (const family of ['evm', 'svm'] as const) {
  if (options.only !== '' && options.only !== family) continue
  const figures = measure(family)
  const { methods, methodsAwake, methodsPerPayment, ...totals } = figures
  say(`${family}: ${JSON.stringify({ methods, methodsAwake, methodsPerPayment })}`)
  for (const plan of plansOf[family]) say(`  ${describe(figures, plan)}`)
  families[family] = totals
  const { callsPerMonthIdle, callsPerPayment } = limits[family]
  isGood &&= totals.callsPerMonthIdle <= callsPerMonthIdle && totals.callsPerPayment <= callsPerPayment
}
say(JSON.stringify({ families }))
process.exitCode = isGood || options.short ? 0 : 1
