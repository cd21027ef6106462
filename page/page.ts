import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** A script and a style, one file each. */
type Bundle = { readonly script: string; readonly style: string }

/** The payment page's, and the console's. */
export type Page = Bundle & { readonly console: Bundle }

const folder = new URL('.', import.meta.url)
/** Written by `npm run build`. */
export const builtFile = new URL('built.json', folder)

/**
 * The page as it was built, if it was built from the sources that are here now. Otherwise it is built now, in memory, so
 * that a change of the sources needs no build step. The bundler is loaded only then: where the page was built before,
 * `serve` runs without it.
 */
export function openPage(file = builtFile): Page {
  const built = readBuilt(file)
  if (built?.sources === digestSources()) return built
  const { buildPage } = createRequire(import.meta.url)('./build.ts') as typeof import('./build.ts')
  return buildPage()
}

/** Changes with every file that the page is made from. */
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
