import { fileURLToPath } from 'node:url'
import { buildSync, stop } from 'esbuild'

/** The payment page's script and style, each in one piece. Made in memory when a server starts: there is nothing to build beforehand. */
export function buildPage(): { readonly script: string; readonly style: string } {
  const built = { script: bundle('src/main.ts'), style: bundle('style/main.css') }
  // The bundler would wait for more work in a process of its own.
  void stop()
  return built
}

function bundle(entry: string): string {
  const { outputFiles } = buildSync({
    absWorkingDir: fileURLToPath(new URL('.', import.meta.url)),
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'error',
  })
  return outputFiles.map(({ text }) => text).join('')
}
