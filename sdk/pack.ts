/**
 * `node sdk/pack.ts <folder>` builds sdk and cli, and packs each into a tarball in that folder. The repository runs
 * from TypeScript. Node does not do that below node_modules, so the packages hold JavaScript and declarations.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildSync, stop } from 'esbuild'

const root = new URL('../', import.meta.url).pathname

export type Packed = {
  readonly name: string
  readonly file: string
  readonly bytes: number
  readonly unpackedBytes: number
}

/** Builds and packs one of our packages into the folder. */
export function pack(name: 'sdk' | 'cli', into: string): Packed {
  const source = join(root, name)
  const build = mkdtempSync(join(tmpdir(), 'farthing-pack-'))
  try {
    builders[name](source, build)
    const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as Manifest
    writeFileSync(join(build, 'package.json'), `${JSON.stringify(toPublished(manifest), null, 2)}\n`)
    copyFileSync(join(source, 'README.md'), join(build, 'README.md'))
    copyFileSync(join(root, 'LICENSE'), join(build, 'LICENSE'))
    mkdirSync(into, { recursive: true })
    const output = execFileSync(
      'npm',
      ['pack', '--json', '--loglevel=error', '--pack-destination', resolve(into)],
      {
        cwd: build,
        encoding: 'utf8',
      },
    )
    const [made] = JSON.parse(output) as { filename: string; unpackedSize: number }[]
    assert(made)
    const file = join(resolve(into), made.filename)
    return { name: manifest.name, file, bytes: statSync(file).size, unpackedBytes: made.unpackedSize }
  } finally {
    rmSync(build, { recursive: true })
  }
}

const builders = {
  /**
   * Each source becomes one file, for others to bundle. Only the declarations keep comments, because editors show
   * those.
   */
  sdk(source: string, build: string): void {
    const flags = ['--noEmit', 'false', '--rewriteRelativeImportExtensions']
    const folders = ['--rootDir', join(source, 'src'), '--outDir', build]
    for (const kind of [['--removeComments'], ['--declaration', '--emitDeclarationOnly']])
      execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', source, ...flags, ...kind, ...folders], {
        stdio: 'inherit',
      })
  },
  /** A program is one file. The SDK is part of it, so that it installs alone; viem stays a package. */
  cli(source: string, build: string): void {
    buildSync({
      entryPoints: [join(source, 'src/main.ts')],
      outfile: join(build, 'main.js'),
      bundle: true,
      external: ['viem'],
      platform: 'node',
      format: 'esm',
      target: 'node22',
      charset: 'utf8',
    })
    void stop()
  },
}

type Manifest = {
  readonly name: string
  readonly exports?: Readonly<Record<string, { readonly default: string }>>
  readonly bin?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** The public manifest, which names built files instead of sources. */
function toPublished(manifest: Manifest) {
  const { private: _private, devDependencies: _development, dependencies, exports, bin, ...rest } = manifest
  const built = (path: string, ending: string) =>
    path.replace(/^(?:\.\/)?src\//, './').replace(/\.ts$/, ending)
  return {
    ...rest,
    ...(dependencies && {
      dependencies: Object.fromEntries(
        Object.entries(dependencies).filter(([name]) => !name.startsWith('@farthing/')),
      ),
    }),
    ...(exports && {
      sideEffects: false,
      exports: Object.fromEntries(
        Object.entries(exports).map(([entry, { default: path }]) => [
          entry,
          { types: built(path, '.d.ts'), default: built(path, '.js') },
        ]),
      ),
    }),
    ...(bin && {
      bin: Object.fromEntries(Object.entries(bin).map(([name, path]) => [name, built(path, '.js').slice(2)])),
    }),
  }
}

if (import.meta.main) {
  const [into = 'packed'] = process.argv.slice(2)
  for (const name of ['sdk', 'cli'] as const) {
    const { file, bytes, unpackedBytes } = pack(name, into)
    process.stdout.write(`${file}: ${bytes} bytes, ${unpackedBytes} unpacked\n`)
  }
}
