import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'

/** Not bundled: native code, packages that only `dev` needs, and optional ones. */
const external = ['secp256k1', 'pg-native', 'litesvm', 'esbuild']
const appEntry = 'server/src/http/app.ts'

/**
 * Bundles the server into a few files, fills the compile cache and returns the file to start. Nothing else changes.
 * Starts limit the number of crashes in a run, and a start that does not resolve a thousand modules takes a third of
 * the time.
 */
export async function packServer(root: string, folder: string, cache: string): Promise<string> {
  const { metafile } = await build({
    metafile: true,
    absWorkingDir: root,
    entryPoints: [join(root, 'server/src/main.ts')],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    external,
    plugins: [keepPlaces, await pageOf(root)],
    // Some bundled packages are CommonJS.
    banner: {
      js: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(${JSON.stringify(join(root, 'server/package.json'))});`,
    },
    logLevel: 'error',
  })
  const main = join(folder, 'main.mjs')
  // A killed process does not save its compile cache, so first run one that loads everything and exits normally.
  const [app] = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === appEntry) ?? []
  if (!app) throw new Error(`${appEntry} is no longer imported dynamically`)
  await promisify(execFile)(process.execPath, ['--import', join(root, app), main, 'help'], {
    env: { NODE_COMPILE_CACHE: cache },
  })
  return main
}

/** Keeps import.meta.url as it was, so that bundled modules still find the files next to their source. */
const keepPlaces: Plugin = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.(m?js|ts)$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      if (!text.includes('import.meta.url')) return null
      const contents = text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' }
    })
  },
}

/** The payment page, built once instead of by every `serve`. */
async function pageOf(root: string): Promise<Plugin> {
  const { resolve } = createRequire(join(root, 'server/package.json'))
  const { openPage } = (await import(resolve('@farthing/page'))) as { openPage(): unknown }
  const contents = `export const openPage = () => (${JSON.stringify(openPage())})`
  return {
    name: 'page',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^@farthing\/page$/ }, ({ path }) => ({ path, namespace: 'page' }))
      onLoad({ filter: /.*/, namespace: 'page' }, () => ({ contents, loader: 'js' }))
    },
  }
}
