import { execFile } from 'node:child_process'
import { chown, mkdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Patroni } from './patroni.ts'

const execute = promisify(execFile)

export type ChaosDatabase = {
  readonly port: number
  url(database: string): string
  /** Whether it has its own disk, which can be filled. */
  readonly isOwnDisk: boolean
  /** Set if it is a cluster of three. */
  readonly cluster: Patroni | null
  isDown(): boolean
  killAndStart(): Promise<void>
  /** Leaves no free byte on the disk for this long. If PostgreSQL exits, it is started again. */
  fillDisk(ms: number): Promise<void>
  /** Takes every free connection for this long. */
  crowd(ms: number): Promise<void>
  /** Only for a single PostgreSQL: copies it while it runs, and replaces its data with that copy after a kill. */
  readonly backup?: { take(): Promise<void>; putBack(): Promise<void> }
  stop(): Promise<void>
}

/** Small enough to be filled, large enough for a run and its write-ahead log. */
const diskMegabytes = 1_500
const connectionsMax = 70
const closeMs = 2_000

/** A private PostgreSQL that can be killed, run out of disk space and run out of connections. */
export async function openDatabase(folder: string): Promise<ChaosDatabase> {
  const bin = await findBinaries()
  const disk = join(folder, 'disk')
  await mkdir(disk)
  const isOwnDisk = await execute('mount', [
    '-t',
    'tmpfs',
    '-o',
    `size=${diskMegabytes}m`,
    'tmpfs',
    disk,
  ]).then(
    () => true,
    () => false,
  )
  const data = join(disk, 'data')
  const isRoot = process.getuid?.() === 0
  if (isRoot) {
    const { stdout } = await execute('id', ['-u', 'postgres'])
    await chown(folder, Number.parseInt(stdout, 10), -1)
    await chown(disk, Number.parseInt(stdout, 10), -1)
  }
  const run = (program: string, args: string[]) =>
    isRoot
      ? execute('runuser', ['-u', 'postgres', '--', join(bin, program), ...args], { cwd: '/' })
      : execute(join(bin, program), args)
  await run('initdb', ['-D', data, '-U', 'farthing', '-A', 'trust', '-k', '-E', 'UTF8', '--no-instructions'])
  const port = await freePort()
  const options = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    `max_connections=${connectionsMax}`,
    'max_wal_size=128MB',
    'cluster_name=farthing_chaos',
  ]
  const start = async () => {
    for (let tries = 0; ; tries++) {
      try {
        const settings = options.map((option) => `-c ${option}`).join(' ')
        await run('pg_ctl', [
          '-D',
          data,
          '-w',
          '-s',
          '-l',
          join(folder, 'postgresql.log'),
          '-o',
          settings,
          'start',
        ])
        return
      } catch (error) {
        // The backends of a killed postmaster hold its shared memory for a moment.
        if (tries === 100) throw error
        await wait(100)
      }
    }
  }
  await start()
  const url = (database: string) => `postgres://farthing@127.0.0.1:${port}/${database}`
  const ballast = join(disk, 'ballast')
  const copy = join(disk, 'copy')
  let isDown = false

  /** Kills the postmaster without warning. */
  const kill = async (): Promise<void> => {
    const [pid = ''] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')
    process.kill(Number.parseInt(pid, 10), 'SIGKILL')
  }

  return {
    port,
    url,
    isOwnDisk,
    cluster: null,
    isDown: () => isDown,
    async killAndStart(): Promise<void> {
      isDown = true
      await kill()
      await start()
      isDown = false
    },
    async fillDisk(ms: number): Promise<void> {
      isDown = true
      const { bavail, bsize } = await statfs(disk)
      await writeFile(ballast, Buffer.alloc(bavail * bsize)).catch(() => {})
      await wait(ms)
      await rm(ballast, { force: true })
      const isRunning = await run('pg_ctl', ['-D', data, 'status']).then(
        () => true,
        () => false,
      )
      if (!isRunning) await start()
      isDown = false
    },
    async crowd(ms: number): Promise<void> {
      const guests = Array.from({ length: connectionsMax }, () => new pg.Client(url('postgres')))
      for (const guest of guests) guest.on('error', () => {})
      await Promise.allSettled(guests.map((guest) => guest.connect()))
      await wait(ms)
      await Promise.allSettled(guests.map((guest) => guest.end()))
    },
    backup: {
      async take(): Promise<void> {
        const from = ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'farthing']
        await run('pg_basebackup', [...from, '-D', copy, '-X', 'stream', '-c', 'fast'])
      },
      async putBack(): Promise<void> {
        isDown = true
        await kill()
        // Remaining backends may still write for a moment, but no longer into the live data folder.
        const lost = join(disk, 'lost')
        await rename(data, lost)
        await rename(copy, data)
        await start()
        await rm(lost, { recursive: true })
        isDown = false
      },
    },
    async stop(): Promise<void> {
      await run('pg_ctl', ['-D', data, '-w', '-m', 'immediate', 'stop']).catch(() => {})
      if (isOwnDisk) await execute('umount', ['-l', disk])
    },
  }
}

async function findBinaries(): Promise<string> {
  for (const version of [18, 17, 16, 15]) {
    const folder = `/usr/lib/postgresql/${version}/bin`
    if (await stat(join(folder, 'initdb')).catch(() => null)) return folder
  }
  throw new Error('No PostgreSQL 15 or later is installed. On Debian: apt-get install postgresql.')
}

export async function freePort(): Promise<number> {
  const server = createServer()
  return await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/** A connection for the harness's own queries. It bypasses the proxies, and reconnects after the database was down. */
export function openObserver(url: string) {
  let client: pg.Client | null = null
  const connect = async (): Promise<pg.Client> => {
    if (client) return client
    const fresh = new pg.Client(url)
    fresh.on('error', () => {
      if (client === fresh) client = null
    })
    await fresh.connect()
    client = fresh
    return fresh
  }
  return {
    /** Retries until there is an answer. */
    async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
      for (let tries = 0; ; tries++) {
        try {
          return (await (await connect()).query<Row>(text, values)).rows
        } catch (error) {
          client = null
          if (tries === 900) throw error
          await wait(100)
        }
      }
    },
    /** Tries once. Returns null if the database is down. */
    async queryOnce<Row extends pg.QueryResultRow>(
      text: string,
      values: unknown[] = [],
    ): Promise<Row[] | null> {
      try {
        return (await (await connect()).query<Row>(text, values)).rows
      } catch {
        client = null
        return null
      }
    },
    async close(): Promise<void> {
      await Promise.race([client?.end().catch(() => {}), wait(closeMs)])
    },
  }
}

export type Observer = ReturnType<typeof openObserver>
