import { fileURLToPath } from 'node:url'
import { buildSync, stop } from 'esbuild'
import type { Page } from './page.ts'

export function buildPage(): Page {
  return {
    script: bundle('src/main.ts'),
    style: bundle('style/main.css'),
    console: { script: bundle('src/console/main.ts'), style: bundle('style/console.css') },
  }
}

/** Bundles a file with everything it imports. `define` replaces names with text that is only known at build time. */
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
  // Otherwise esbuild's child process keeps running and waits for more work.
  void stop()
  return outputFiles.map(({ text }) => text).join('')
}
