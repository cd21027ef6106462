import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/**
 * What each key may still spend today (UTC). It counts the most that a transaction can cost, because only that is known
 * when it is signed. Replacements at one nonce count once, by the dearest: only one of them is mined.
 */
export type Spending = {
  /** Counts a cost. If that would be too much, counts nothing and returns the reason. */
  take(cost: Cost): string | null
}

type Cost = {
  readonly address: string
  readonly network: string
  /** Of several transactions with the same slot, at most one takes effect. */
  readonly slot: string
  /** In the smallest unit of the network's currency. */
  readonly units: bigint
  /** Null: not limited. */
  readonly perDay: bigint | null
}

/** Limits memory. A forgotten slot is counted again, which errs on the safe side. */
const slotsMax = 10_000

/** With a file, the sums outlive the process: they are written there before anything is signed. */
export function openSpending(now: () => Date, file: string | null): Spending {
  const slots = new Map<string, bigint>()
  let { day, sums } = file === null ? nothing : read(file)

  return {
    take({ address, network, slot, units, perDay }) {
      if (perDay === null) return null
      const today = now().toISOString().slice(0, 10)
      if (today !== day) {
        day = today
        sums = new Map()
        slots.clear()
      }
      const account = `${network} ${address}`
      const before = slots.get(`${account} ${slot}`) ?? 0n
      const more = units > before ? units - before : 0n
      const sum = (sums.get(account) ?? 0n) + more
      if (sum > perDay) return `today's limit of ${perDay} is used up: with this it would be ${sum}`
      if (more === 0n) return null
      sums.set(account, sum)
      slots.set(`${account} ${slot}`, units)
      const [oldest] = slots.keys()
      if (slots.size > slotsMax && oldest !== undefined) slots.delete(oldest)
      if (file !== null) write(file, { day, sums })
      return null
    },
  }
}

type Spent = { readonly day: string; readonly sums: Map<string, bigint> }

const nothing: Spent = { day: '', sums: new Map() }

/** Throws if the file exists but is not ours: starting from zero would forget what was spent. */
function read(file: string): Spent {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return nothing
    throw error
  }
  const { day, sums } = JSON.parse(text) as { day: string; sums: Record<string, string> }
  return { day, sums: new Map(Object.entries(sums).map(([account, sum]) => [account, BigInt(sum)])) }
}

function write(file: string, { day, sums }: Spent): void {
  const text = JSON.stringify({
    day,
    sums: Object.fromEntries([...sums].map(([key, sum]) => [key, `${sum}`])),
  })
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
