/**
 * The machines of the exercise (cells-exercise.ts). Each is a folder: the paths, ports and host names of docs/cells.md are
 * replaced by those of the folder, and its commands run in one shell. `systemctl` there asks this process, which starts
 * and stops PostgreSQL and our processes as the units of ops/systemd do.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { chown, mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseEnv, promisify } from 'node:util'
import { startCluster } from '../server/src/dev/postgres.ts'
import { freePort } from '../server/test/support/free-port.ts'
import { type Server, type Stand, startServer } from './stand.ts'

const execute = promisify(execFile)
const root = new URL('..', import.meta.url).pathname
const isRoot = process.getuid?.() === 0
/** As in ops/systemd. */
const drainSeconds = 5
/** Far longer than any block takes, because a machine can be shared with others. */
const blockTimeoutMs = 300_000
/** There are many short commands, so most of their time goes into starting. */
const compileCache = join(tmpdir(), 'farthing-cells-compiled')

export type Machine = {
  /** As the fences in docs/cells.md call it, without "on-". */
  readonly name: string
  readonly folder: string
  /** Its PostgreSQL. After a database has moved, this is the new one. */
  database: { readonly folder: string; readonly port: number }
  /** The ports that replace 8402 and 8404. */
  readonly ports: readonly [number, number]
  readonly units: Map<string, Server>
  /** Everything it has started, so that nothing outlives the exercise. */
  readonly children: Set<ChildProcess>
}

export async function makeMachine(
  name: string,
  { folder, children }: Pick<Stand, 'folder' | 'children'>,
  databasePort: number,
): Promise<Machine> {
  await mkdir(join(folder, 'etc/farthing'), { recursive: true })
  await mkdir(join(folder, 'opt'))
  await symlink(root, join(folder, 'opt/farthing'))
  if (isRoot) {
    const { stdout } = await execute('id', ['-u', 'postgres'])
    await chown(folder, Number.parseInt(stdout, 10), -1)
  }
  const ports = [await freePort(), await freePort()] as const
  return { name, folder, database: { folder, port: databasePort }, ports, units: new Map(), children }
}

/** Writes a machine's settings as docs/deploying.md does: one file for all, and one with each role's URL. */
export async function writeSettings(
  { folder, database }: Machine,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const { DATABASE_URL: _, PATH: __, PORT: ___, OPERATIONS_PORT: ____, ...shared } = settings
  const lines = Object.entries(shared).map(([name, value]) => `${name}=${value}\n`)
  await writeFile(join(folder, 'etc/farthing/env'), lines.join(''))
  for (const role of ['owner', 'serve', 'work', 'operator']) {
    const user = role === 'owner' || role === 'operator' ? 'farthing' : `farthing_${role}`
    await writeFile(
      join(folder, `etc/farthing/${role}.env`),
      `DATABASE_URL=postgres://${user}@127.0.0.1:${database.port}/farthing\nSETTLER_KEYS_FILE=${join(folder, 'etc/farthing/settler.keys')}\n`,
    )
  }
}

/** Kills everything on a machine at once. */
export function killMachine(machine: Machine): void {
  const postmaster = Number.parseInt(
    readFileSync(join(machine.database.folder, 'data/postmaster.pid'), 'utf8'),
    10,
  )
  for (const pid of [postmaster, ...[...machine.units.values()].map(({ child }) => child.pid ?? 0)])
    if (pid > 0) process.kill(pid, 'SIGKILL')
  machine.units.clear()
}

/** Starts, stops or restarts one unit. */
async function control(machine: Machine, verb: string, unit: string): Promise<void> {
  if (unit === 'postgresql') return await controlDatabase(machine.database, verb)
  assert(/^(start|stop|restart)$/.test(verb), `systemctl ${verb} ${unit}`)
  const running = machine.units.get(unit)
  if (running && verb !== 'start') {
    machine.units.delete(unit)
    running.child.kill('SIGTERM')
    if (running.child.exitCode === null && running.child.signalCode === null)
      await once(running.child, 'exit')
  }
  if (verb !== 'stop') machine.units.set(unit, await startUnit(machine, unit))
}

async function startUnit(machine: Machine, unit: string): Promise<Server> {
  const [, command = '', port = '0'] = /^farthing-(serve|work)(?:@(\d+))?$/.exec(unit) ?? []
  assert(command === 'serve' || command === 'work', unit)
  const settings = join(machine.folder, 'etc/farthing')
  const environment: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    NODE_COMPILE_CACHE: compileCache,
    ...(parseEnv(readFileSync(join(settings, 'env'), 'utf8')) as Record<string, string>),
    ...(parseEnv(readFileSync(join(settings, `${command}.env`), 'utf8')) as Record<string, string>),
    PORT: port,
    OPERATIONS_PORT: '0',
    DRAIN_SECONDS: `${drainSeconds}`,
    MIGRATE_ON_START: 'false',
    ...(command === 'work' && { SETTLER_KEYS_FILE: join(settings, 'settler.keys') }),
  }
  const program = join(machine.folder, 'opt/farthing/server/src/main.ts')
  // The role's file has the role's URL.
  return await startServer(machine, command, environment, { program, isSuperuser: true })
}

export async function controlDatabase({ folder, port }: Machine['database'], verb: string): Promise<void> {
  const settings = [`port=${port}`, 'shared_buffers=128MB', 'wal_level=replica']
  if (verb === 'start') return void (await startCluster(folder, settings))
  const data = join(folder, 'data')
  const [bin = ''] = ['/usr/lib/postgresql/17/bin', '/usr/lib/postgresql/15/bin', '/usr/bin'].filter((path) =>
    existsSync(join(path, 'pg_ctl')),
  )
  const words = verb === 'reload' ? ['reload'] : ['-w', '-m', 'fast', 'stop']
  const command = [join(bin, 'pg_ctl'), '-D', data, ...words]
  if (isRoot) await execute('runuser', ['-u', 'postgres', '--', ...command], { cwd: '/' })
  else await execute(command[0] ?? '', command.slice(1))
}

export type Shell = {
  /** Runs commands of the page on a machine and returns what they print. */
  run(machine: Machine, commands: string): Promise<string>
  close(): Promise<void>
}

/**
 * One shell for all machines. `replace` has further texts of the page and their replacements. `reload` is called when
 * the proxy has to load its configuration again.
 */
export async function openShell(
  machines: readonly Machine[],
  replace: Readonly<Record<string, string>>,
  reload: () => Promise<void>,
): Promise<Shell> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const machine = machines.find(({ name }) => request.url === `/${name}`)
    const [verb = '', ...units] = body.replace('enable --now', 'start').split(' ')
    try {
      assert(machine)
      if (units[0] === 'haproxy') await reload()
      else await Promise.all(units.map((unit) => control(machine, verb, unit)))
      response.end()
    } catch (error) {
      response.writeHead(500).end(`${error}\n`)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const asPostgres = isRoot ? 'runuser -u postgres --' : ''
  const shell = spawn('bash', [], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache },
  })
  const exited = once(shell, 'exit')
  const lines = createInterface({ input: shell.stdout })
  shell.stdin.write(`set -euo pipefail
exec 2>&1
systemctl() { curl -sS --fail-with-body "http://127.0.0.1:${port}/$MACHINE" -d "$*"; }
farthing-admin() { SETTINGS_FOLDER="$FOLDER/etc/farthing" node "$FOLDER/opt/farthing/server/farthing-admin.cjs" "$@"; }
sudo() { shift 2; (cd / && ${asPostgres} env PGHOST=127.0.0.1 PGPORT="$PGPORT" PGUSER=farthing "$@"); }
`)
  return {
    async run(machine, commands) {
      const written = join(machine.folder, 'commands.sh')
      await writeFile(written, translate(commands, machine, replace))
      shell.stdin.write(
        `MACHINE=${machine.name} FOLDER=${machine.folder} PGPORT=${machine.database.port}\n. ${written} </dev/null\nprintf '\\n@done\\n'\n`,
      )
      return await readUntilDone(lines, exited, commands)
    },
    async close() {
      server.close()
      shell.kill('SIGKILL')
      await exited
    },
  }
}

function translate(commands: string, machine: Machine, replace: Readonly<Record<string, string>>): string {
  const places: Readonly<Record<string, string>> = {
    ...replace,
    '/etc/farthing': join(machine.folder, 'etc/farthing'),
    '/opt/farthing': join(machine.folder, 'opt/farthing'),
    '/var/lib/postgresql/15/main': join(machine.database.folder, 'data'),
    '/etc/postgresql/15/main': join(machine.database.folder, 'data'),
    '8402': `${machine.ports[0]}`,
    '8404': `${machine.ports[1]}`,
  }
  const names = Object.keys(places).map((name) => name.replaceAll('.', '\\.'))
  return commands.replaceAll(new RegExp(names.join('|'), 'g'), (name) => places[name] ?? name)
}

function readUntilDone(
  lines: ReturnType<typeof createInterface>,
  exited: Promise<unknown>,
  commands: string,
): Promise<string> {
  let text = ''
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${why}:\n${commands}\n${text}`))
    const timeout = setTimeout(() => fail('not done in time'), blockTimeoutMs)
    const hear = (line: string) => {
      if (line !== '@done') {
        text += `${line}\n`
        return
      }
      clearTimeout(timeout)
      lines.off('line', hear)
      resolve(text)
    }
    lines.on('line', hear)
    exited.then(
      () => fail('a command failed'),
      () => {},
    )
  })
}
