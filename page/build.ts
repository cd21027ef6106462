import { fileURLToPath } from 'node:url'
import { buildSync, stop } from 'esbuild'

/** The payment page's script and style, each in one piece. Made in memory when a server starts: there is nothing to build beforehand. */
export function buildPage(): { readonly script: string; readonly style: string } {
  return { script: bundle('src/main.ts'), style: bundle('style/main.css') }
}

/** One file and all it imports, with names replaced by text where they are to be known only when it is built. */
export function bundle(entry: string, define: Readonly<Record<string, string>> = {}): string {
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
    define,
  })
  // The bundler would wait for more work in a process of its own.
  void stop()
  return outputFiles.map(({ text }) => text).join('')
}
