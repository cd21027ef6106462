import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Records what is spent in an append-only file for each day (UTC). A payment's line is on disk before the payment is
 * signed, so no crash or restart loses it. The line stays even if the payment is then refused, because anyone who holds
 * the signature could use it until its window ends.
 *
 * Several servers may share the folder. Appending puts their lines in one order that all of them see. A payment is
 * within the limit if the sum up to its own line is. Otherwise its line is withdrawn and the payment is not signed.
 */
export type Spending = {
  /** Counts an amount, in millionths of a dollar. Returns false, and counts nothing, if the day's limit forbids it. */
  reserve(checkoutUrl: string, dollars: bigint): Promise<boolean>
  /** What is left today. */
  left(): Promise<bigint>
}

type Entry = { readonly id: string; readonly dollars: bigint }

export function openSpending(folder: string, maxPerDay: bigint, now: () => Date): Spending {
  const fileOf = (time: Date) => join(folder, `spent-${time.toISOString().slice(0, 10)}.jsonl`)
  return {
    async reserve(checkoutUrl, dollars) {
      const time = now()
      const file = fileOf(time)
      if (sum(await readEntries(file)) + dollars > maxPerDay) return false
      const id = randomUUID()
      await append(folder, file, { id, at: time.toISOString(), checkoutUrl, dollars: String(dollars) })
      const entries = await readEntries(file)
      const place = entries.findIndex((entry) => entry.id === id)
      if (place === -1) throw new Error(`${file} lost a line that was just written. Nothing was signed.`)
      if (sum(entries.slice(0, place + 1)) <= maxPerDay) return true
      await append(folder, file, { withdrawn: id })
      return false
    },
    async left() {
      const left = maxPerDay - sum(await readEntries(fileOf(now())))
      return left > 0n ? left : 0n
    },
  }
}

function sum(entries: readonly Entry[]): bigint {
  return entries.reduce((total, { dollars }) => total + dollars, 0n)
}

/** The day's entries in their order, without withdrawn ones. Throws if the file is damaged: then nothing is signed. */
async function readEntries(file: string): Promise<Entry[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const lines = text
    .split('\n')
    // A crash may have cut off a line; then nothing was signed for it. Every append starts on a new line.
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as { id?: string; dollars?: string; withdrawn?: string })
  const withdrawn = new Set(lines.map((line) => line.withdrawn))
  return lines.flatMap(({ id, dollars }) =>
    id === undefined || dollars === undefined || withdrawn.has(id) ? [] : [{ id, dollars: BigInt(dollars) }],
  )
}

async function append(folder: string, file: string, line: object): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const bytes = Buffer.from(`\n${JSON.stringify(line)}\n`)
  const handle = await open(file, 'a', 0o600)
  try {
    const { bytesWritten } = await handle.write(bytes)
    if (bytesWritten !== bytes.length) throw new Error(`${file} could not be written. Nothing was signed.`)
    await handle.sync()
  } finally {
    await handle.close()
  }
  // The file's entry in its folder must survive too.
  const directory = await open(folder)
  await directory.sync().finally(() => directory.close())
}
