import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

/** The payment page's script and style, each in one piece. Made in memory when a server starts: there is nothing to build beforehand. */
export function buildPage(): { readonly script: string; readonly style: string } {
  return { script: bundle('src/main.ts'), style: bundle('style.css') }
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
