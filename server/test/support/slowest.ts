import { relative, resolve } from 'node:path'

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

/** A reporter of node:test. At the end of a long run, it names the files that took longest. */
export default async function* slowest(reports: AsyncIterable<Report>): AsyncGenerator<string> {
  const files: { readonly name: string; readonly ms: number }[] = []
  for await (const { type, data } of reports)
    if (type === 'test:complete' && data.file !== undefined && resolve(data.name ?? '') === data.file)
      files.push({ name: relative(root, data.file), ms: data.details?.duration_ms ?? 0 })
  if (files.length < shown) return
  files.sort((a, b) => b.ms - a.ms)
  const seconds = files.reduce((sum, { ms }) => sum + ms, 0) / 1_000
  yield `\n${files.length} files took ${seconds.toFixed(0)} s, several at once. The slowest:\n`
  for (const { name, ms } of files.slice(0, shown))
    yield `${(ms / 1_000).toFixed(1).padStart(8)} s  ${name}\n`
}
