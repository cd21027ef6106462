import { existsSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { readTimes, timesFile } from './turns.ts'

/**
 * What node:test reports. A file is a test of its own, whose name is its path as it was
 * given; its time includes its process's start.
 */
type Report = {
  readonly type: string
  readonly data: {
    readonly name?: string
    readonly file?: string
    readonly details?: { readonly duration_ms?: number }
  }
}

const shown = 30
const root = new URL('../../../', import.meta.url).pathname

/**
 * A reporter of node:test. At the end of a long run, it names the files that took longest. With FARTHING_TEST_RECORD=1 it
 * stores how long each took (see turns.ts).
 */
export default async function* slowest(reports: AsyncIterable<Report>): AsyncGenerator<string> {
  const files: { readonly name: string; readonly ms: number }[] = []
  for await (const { type, data } of reports)
    if (type === 'test:complete' && data.file !== undefined && resolve(data.name ?? '') === data.file)
      files.push({ name: relative(root, data.file), ms: data.details?.duration_ms ?? 0 })
  if (process.env.FARTHING_TEST_RECORD === '1') record(files)
  if (files.length < shown) return
  files.sort((a, b) => b.ms - a.ms)
  const seconds = files.reduce((sum, { ms }) => sum + ms, 0) / 1_000
  yield `\n${files.length} files took ${seconds.toFixed(0)} s, several at once. The slowest:\n`
  for (const { name, ms } of files.slice(0, shown))
    yield `${(ms / 1_000).toFixed(1).padStart(8)} s  ${name}\n`
}

/** Files that did not run keep their time, unless they no longer exist. */
function record(files: readonly { readonly name: string; readonly ms: number }[]): void {
  const times = {
    ...readTimes(),
    ...Object.fromEntries(files.map(({ name, ms }) => [name, Math.ceil(ms / 1_000)])),
  }
  const kept = Object.entries(times)
    .filter(([name]) => existsSync(`${root}${name}`))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(timesFile, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`)
}
