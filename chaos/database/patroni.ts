import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { type ChaosDatabase, freePort } from './database.ts'

/**
 * Three PostgreSQL under Patroni in strict synchronous mode, three etcd, and HAProxy before them, all on loopback: what
 * an acknowledged write needs to outlive the machine it was written on. Debian: apt-get install patroni etcd-server
 * haproxy. Nodes that were killed are started again and rejoin by themselves, and whoever cannot is made anew.
 */
const members = ['n1', 'n2', 'n3'] as const
/** Some times what the slowest blow takes on a busy machine: whoever is not there by then will not come. */
const takeoverMs = 60_000
const remakeMs = 60_000
const wholeMs = 180_000
const lookMs = 100
/** A write takes milliseconds where it is acknowledged. */
const secondMs = 500
/** A member's answer takes milliseconds; one that was killed has none. */
const answerMs = 2_000
/** What three PostgreSQL and three etcd keep at most, of which most is write-ahead log. */
const diskMegabytes = 4_000

type Node = {
  readonly name: string
  readonly api: number
  readonly port: number
  readonly data: string
  readonly config: string
  patroni: ChildProcess | null
}

/**
 * What is done to the leader. A switchover is asked for. A postmaster is killed below its Patroni, which gives the lock
 * away. A node loses Patroni and every process of PostgreSQL at once, and another takes over when its lock has run out.
 * When Patroni alone is killed its PostgreSQL runs on as a second primary, until it is started again and steps down: what
 * is written there must not be acknowledged, because its synchronous standby has become the new leader.
 */
export const blows = ['switchOver', 'killPostmaster', 'killNode', 'killPatroni'] as const
type Blow = (typeof blows)[number]

export type Patroni = {
  /**
   * Strikes the leader and returns when all three are whole again. It counts a failover only if another leads on a new
   * timeline, and counts what else came of it.
   */
  strike(blow: Blow, count: (what: string, times?: number) => void): Promise<void>
}

type Seen = {
  readonly name: string
  readonly role: string
  readonly state: string
  readonly timeline?: number
}

export async function openPatroni(folder: string): Promise<ChaosDatabase> {
  const identity = (flag: string) =>
    Number.parseInt(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }), 10)
  const user = { uid: identity('-u'), gid: identity('-g') }
  const home = join(folder, 'patroni')
  const disk = join(home, 'disk')
  mkdirSync(disk, { recursive: true })
  const isOwnDisk = mountMemory(disk)
  for (const path of [folder, home, disk]) chownSync(path, user.uid, user.gid)
  const run = (program: string, args: readonly string[], name: string): ChildProcess => {
    const log = openSync(join(home, `${name}.log`), 'a')
    const child = spawn(program, args, { ...user, cwd: home, stdio: ['ignore', log, log] })
    closeSync(log)
    return child
  }

  const etcds = await startEtcds(disk, run)
  const nodes: Node[] = []
  for (const name of members) {
    const node = {
      name,
      api: await freePort(),
      port: await freePort(),
      data: join(disk, name),
      patroni: null,
    }
    const config = join(home, `${name}.yml`)
    writeFileSync(config, patroniConfig({ ...node, home, etcd: etcds.hosts }))
    nodes.push({ ...node, config })
  }
  const start = (node: Node) => {
    node.patroni = run('/usr/bin/patroni', [node.config], node.name)
  }
  for (const node of nodes) start(node)
  const port = await freePort()
  const proxyConfig = join(home, 'haproxy.cfg')
  writeFileSync(proxyConfig, haproxyConfig(port, nodes))
  const haproxy = run('/usr/sbin/haproxy', ['-db', '-f', proxyConfig], 'haproxy')

  /** As the first member that answers sees it; empty if none does. */
  const readCluster = async (): Promise<Seen[]> => {
    const asked = nodes.map(async ({ api }) => {
      const signal = AbortSignal.timeout(answerMs)
      const answer = await fetch(`http://127.0.0.1:${api}/cluster`, { signal })
      if (!answer.ok) throw new Error(`${answer.status}`)
      return ((await answer.json()) as { members: Seen[] }).members
    })
    return await Promise.any(asked).catch(() => [])
  }
  const isUp = ({ state }: Seen) => state === 'running' || state === 'streaming'
  const leaderOf = (seen: readonly Seen[]) => seen.find((one) => one.role === 'leader' && isUp(one))
  const nodeOf = (name: string) => nodes.find((node) => node.name === name) as Node
  const endPatroni = async ({ patroni }: Node) => {
    if (!patroni || patroni.exitCode !== null || patroni.signalCode !== null) return
    patroni.kill('SIGKILL')
    await once(patroni, 'exit')
  }
  const endNode = async (node: Node) => {
    const ended = endPatroni(node)
    endPostmaster(node.data, true)
    await ended
  }

  /** Until there is a leader with a synchronous standby, and all three follow one timeline. */
  const untilWhole = async (): Promise<{ leader: Seen; remade: number }> => {
    const startedAt = Date.now()
    const remade = new Set<string>()
    for (;;) {
      const seen = await readCluster()
      const leader = leaderOf(seen)
      const following = seen.filter((one) => isUp(one) && one.timeline === leader?.timeline)
      if (leader && following.length === nodes.length && seen.some(({ role }) => role === 'sync_standby'))
        return { leader, remade: remade.size }
      const elapsedMs = Date.now() - startedAt
      if (elapsedMs > wholeMs) throw new Error(`the cluster is not whole: ${JSON.stringify(seen)}`)
      // The leader has whatever was acknowledged, so that the others can be copied from it.
      const isLost = ({ name }: Node) => !following.some((one) => one.name === name) && !remade.has(name)
      if (leader && elapsedMs > remakeMs)
        for (const node of nodes.filter(isLost)) {
          remade.add(node.name)
          await endNode(node)
          rmSync(node.data, { recursive: true, force: true })
          start(node)
        }
      await wait(lookMs)
    }
  }
  /** False if the same one leads after all that time. */
  const untilAnotherLeads = async (before: Seen): Promise<boolean> => {
    const giveUpAt = Date.now() + takeoverMs
    while (Date.now() < giveUpAt) {
      const now = leaderOf(await readCluster())
      if (now && now.name !== before.name && (now.timeline ?? 0) > (before.timeline ?? 0)) return true
      await wait(lookMs)
    }
    return false
  }
  const hit: Record<Blow, (node: Node) => Promise<void>> = {
    async switchOver({ name, api }) {
      const body = JSON.stringify({ leader: name })
      const signal = AbortSignal.timeout(takeoverMs)
      await fetch(`http://127.0.0.1:${api}/switchover`, { method: 'POST', body, signal }).catch(() => null)
    },
    killPostmaster: async ({ data }) => endPostmaster(data, false),
    killNode: endNode,
    killPatroni: endPatroni,
  }
  const cluster: Patroni = {
    async strike(blow, count) {
      const before = (await untilWhole()).leader
      const struck = nodeOf(before.name)
      await hit[blow](struck)
      const isTaken = await untilAnotherLeads(before)
      if (blow === 'killPatroni' && isTaken && (await isSecondPrimary(struck)))
        count('second primary, which acknowledged nothing')
      if (blow === 'killNode' || blow === 'killPatroni') start(struck)
      const { leader, remade } = await untilWhole()
      count(isTaken ? `failover: ${blow}` : `no failover: ${blow}`)
      const timelines = (leader.timeline ?? 0) - (before.timeline ?? 0)
      if (timelines > 1) count('failover: unasked', timelines - 1)
      if (remade > 0) count('member made anew', remade)
    },
  }
  const stop = async () => {
    for (const node of nodes) await endNode(node)
    for (const child of [haproxy, ...etcds.children]) child.kill('SIGKILL')
    if (isOwnDisk) execFileSync('umount', ['-l', disk])
  }
  try {
    await untilWhole()
  } catch (error) {
    await stop()
    throw error
  }

  const refuse = async () => {
    throw new Error('this is done to a single PostgreSQL only')
  }
  return {
    port,
    url: (database) => `postgres://farthing@127.0.0.1:${port}/${database}`,
    isOwnDisk: false,
    cluster,
    isDown: () => false,
    killAndStart: refuse,
    fillDisk: refuse,
    crowd: refuse,
    stop,
  }
}

/** Where we may mount, files are in memory: they outlive killed processes just so, and are gone with the run. */
function mountMemory(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'tmpfs', folder], {
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
}

/** Kills a postmaster, with or without the processes below it. It may have ended before, and another have its number. */
function endPostmaster(data: string, isWithAll: boolean): void {
  const pids: string[] = []
  try {
    const [pid = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    if (readlinkSync(`/proc/${pid}/cwd`) !== data) return
    pids.push(pid)
    if (isWithAll) pids.push(...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' '))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  for (const pid of pids)
    try {
      process.kill(Number.parseInt(pid, 10), 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
}

/** Whether it still is a primary of its own, beside the one that leads. It may take a write, but not acknowledge it. */
async function isSecondPrimary({ name, port }: Node): Promise<boolean> {
  const client = new pg.Client(`postgres://farthing@127.0.0.1:${port}/postgres`)
  client.on('error', () => {})
  const isUp = await client.connect().then(
    () => true,
    () => false,
  )
  if (!isUp) return false
  try {
    const { rows } = await client.query<{ is_standby: boolean }>('select pg_is_in_recovery() as is_standby')
    if (rows[0]?.is_standby !== false) return false
    const written = client.query(`select pg_logical_emit_message(true, 'chaos', 'written beside the leader')`)
    const isAcknowledged = await Promise.race([
      written.then(
        () => true,
        () => false,
      ),
      wait(secondMs, false),
    ])
    if (isAcknowledged) throw new Error(`${name} acknowledged a write after another had taken over`)
    return true
  } finally {
    // It hangs in its write.
    client.end().catch(() => {})
  }
}

async function startEtcds(
  disk: string,
  run: (program: string, args: string[], name: string) => ChildProcess,
) {
  const ports = await Promise.all(
    members.map(async (name) => ({ name, client: await freePort(), peer: await freePort() })),
  )
  const initial = ports.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join(',')
  const children = ports.map(({ name, client, peer }) =>
    run(
      '/usr/bin/etcd',
      [
        ...['--name', name, '--data-dir', join(disk, `etcd-${name}`)],
        ...[
          '--listen-client-urls',
          `http://127.0.0.1:${client}`,
          '--advertise-client-urls',
          `http://127.0.0.1:${client}`,
        ],
        ...[
          '--listen-peer-urls',
          `http://127.0.0.1:${peer}`,
          '--initial-advertise-peer-urls',
          `http://127.0.0.1:${peer}`,
        ],
        ...['--initial-cluster', initial, '--initial-cluster-state', 'new'],
        // A lock is written anew twice a second: of all that, little is kept.
        ...['--auto-compaction-mode', 'periodic', '--auto-compaction-retention', '1m'],
        ...['--snapshot-count', '5000', '--max-snapshots', '1', '--max-wals', '1'],
      ],
      `etcd-${name}`,
    ),
  )
  return { children, hosts: ports.map(({ client }) => `127.0.0.1:${client}`) }
}

/** JSON is YAML too. */
function patroniConfig(node: {
  name: string
  api: number
  port: number
  data: string
  home: string
  etcd: readonly string[]
}) {
  const api = `127.0.0.1:${node.api}`
  const address = `127.0.0.1:${node.port}`
  const account = (username: string) => ({ username, password: 'chaos' })
  return JSON.stringify({
    scope: 'farthing-chaos',
    name: node.name,
    restapi: { listen: api, connect_address: api },
    etcd3: { hosts: node.etcd },
    bootstrap: {
      dcs: {
        // As low as they work: Patroni 3.0 gives no lock away within a retry of a second, makes whole seconds of all
        // three, and wants the first to be no less than the second and twice the third.
        ttl: 5,
        loop_wait: 1,
        retry_timeout: 2,
        maximum_lag_on_failover: 1_048_576,
        // Another takes over at once instead of waiting for the one that crashed.
        primary_start_timeout: 0,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: {
          use_pg_rewind: true,
          // A slot is made after its standby has asked for it, which then waits; and it keeps logs without end.
          use_slots: false,
          parameters: {
            max_connections: 100,
            shared_buffers: '64MB',
            wal_level: 'replica',
            hot_standby: 'on',
            // More than is written while a member is away, and little: pg_rewind copies all that is kept.
            wal_keep_size: '64MB',
            min_wal_size: '32MB',
            max_wal_size: '64MB',
            wal_retrieve_retry_interval: '250ms',
            // A new leader writes a checkpoint before others can rewind to it.
            checkpoint_completion_target: 0,
            wal_log_hints: 'on',
            synchronous_commit: 'on',
          },
        },
      },
      // Every new timeline begins a segment of its own: at 16 MB each, a long run would fill its disk with them.
      initdb: [{ encoding: 'UTF8' }, 'data-checksums', { 'wal-segsize': '1' }],
      pg_hba: ['host replication all 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: node.data,
      bin_dir: '/usr/lib/postgresql/15/bin',
      // Whoever cannot be rewound copies the leader.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      pgpass: join(node.home, `pgpass-${node.name}`),
      authentication: {
        superuser: account('farthing'),
        replication: account('replicator'),
        rewind: account('rewinder'),
      },
      parameters: { unix_socket_directories: node.home },
    },
    watchdog: { mode: 'off' },
  })
}

function haproxyConfig(port: number, nodes: readonly Node[]): string {
  const servers = nodes.map(({ name, port, api }) => `  server ${name} 127.0.0.1:${port} check port ${api}`)
  return `global
  maxconn 500
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 1s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 200ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`
}
