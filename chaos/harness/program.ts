import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'

/** Loaded from where they are: native code, what only `dev` needs, and what need not be there at all. */
const external = ['secp256k1', 'pg-native', 'litesvm', 'esbuild']
const appEntry = 'server/src/http/app.ts'

/**
 * Packs the server into a few files, compiles them into the cache, and returns the one to start. Nothing else is changed:
 * a run's number of deaths is limited by what a start costs, which is a third when a thousand modules need not be looked
 * for.
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
    // Some of what is packed is CommonJS.
    banner: {
      js: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(${JSON.stringify(join(root, 'server/package.json'))});`,
    },
    logLevel: 'error',
  })
  const main = join(folder, 'main.mjs')
  // Whoever is killed saves nothing of what it compiled, so one start that loads everything and ends well comes first.
  const [app] = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === appEntry) ?? []
  if (!app) throw new Error(`${appEntry} is not loaded by itself any more`)
  await promisify(execFile)(process.execPath, ['--import', join(root, app), main, 'help'], {
    env: { NODE_COMPILE_CACHE: cache },
  })
  return main
}

/** What is read from beside a module is still found there. */
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

/** The payment page as every `serve` would make it, made once. */
async function pageOf(root: string): Promise<Plugin> {
  const { resolve } = createRequire(join(root, 'server/package.json'))
  const { buildPage } = (await import(resolve('@farthing/page'))) as { buildPage(): unknown }
  const contents = `export const buildPage = () => (${JSON.stringify(buildPage())})`
  return {
    name: 'page',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^@farthing\/page$/ }, ({ path }) => ({ path, namespace: 'page' }))
      onLoad({ filter: /.*/, namespace: 'page' }, () => ({ contents, loader: 'js' }))
    },
  }
}
