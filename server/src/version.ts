import { readFileSync } from 'node:fs'

/** Which version runs: that of the package, and the commit, so that a log, a metric and a report name the same code. */
export type Version = { readonly version: string; readonly commit: string }

const root = new URL('../../', import.meta.url)

/** A clone knows its commit. An image is built without a clone, so its build records the commit (page/write.ts). */
export const version: Version = {
  version: JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).version,
  commit: readCommit() ?? 'unknown',
}

export function describeVersion(): string {
  return `Farthing ${version.version} (${version.commit})`
}

function readCommit(): string | null {
  const head = readText('.git/HEAD')
  if (head === null) return readText('page/commit')
  const [, name] = /^ref: (.+)$/.exec(head) ?? []
  const hash = name === undefined ? head : (readText(`.git/${name}`) ?? findPacked(name))
  return hash?.slice(0, 7) ?? null
}

function findPacked(name: string): string | null {
  const line = readText('.git/packed-refs')
    ?.split('\n')
    .find((each) => each.endsWith(` ${name}`))
  return line?.split(' ')[0] ?? null
}

function readText(name: string): string | null {
  try {
    return readFileSync(new URL(name, root), 'utf8').trim() || null
  } catch {
    // There is none, or this user may not read it: the version is still right, only the commit is not known.
    return null
  }
}
