import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** A script and a style, one file each. */
type Bundle = { readonly script: string; readonly style: string }

/** One for the payment page, one for the console. */
export type Page = Bundle & { readonly console: Bundle }

const folder = new URL('.', import.meta.url)
/** Written by `npm run build`. */
export const builtFile = new URL('built.json', folder)

/**
 * Returns the built page if it matches the sources. Otherwise builds it in memory, so that a changed source needs no
 * build step. Only then is the bundler loaded, so `serve` runs without one where the page is already built.
 */
export function openPage(file = builtFile): Page {
  const built = readBuilt(file)
  if (built?.sources === digestSources()) return built
  const { buildPage } = createRequire(import.meta.url)('./build.ts') as typeof import('./build.ts')
  return buildPage()
}

/** A hash of every file that the page is built from. */
export function digestSources(): string {
  const hash = createHash('sha256')
  const names = globSync(['build.ts', 'src/**/*.*', 'style/**/*.*'], { cwd: folder.pathname })
  for (const name of names.sort()) hash.update(`${name}\0`).update(readFileSync(new URL(name, folder)))
  return hash.digest('hex')
}

function readBuilt(file: URL): (Page & { readonly sources: string }) | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
