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
import { haproxyConfig, patroniConfig } from './patroni-config.ts'

/**
 * Three PostgreSQL under Patroni in strict synchronous mode, three etcd, and HAProxy in front, all on loopback: this is
 * what an acknowledged write needs to survive the loss of its machine. On Debian: apt-get install patroni etcd-server
 * haproxy. Killed nodes are started again and rejoin by themselves; one that cannot is recreated from the leader.
 */
const members = ['n1', 'n2', 'n3'] as const
/** Several times as long as the slowest takeover on a busy machine. After this, no takeover is coming. */
const takeoverMs = 60_000
const remakeMs = 60_000
const wholeMs = 180_000
const lookMs = 100
/** An acknowledged write takes milliseconds. */
const secondMs = 500
/** A member answers within milliseconds; a killed one never does. */
const answerMs = 2_000
/** The most disk space that three PostgreSQL and three etcd use, mostly for write-ahead log. */
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
 * Faults of the leader.
 *
 *   switchOver      a requested switchover
 *   killPostmaster  PostgreSQL dies under its Patroni, which releases the lock
 *   killNode        Patroni and every process of PostgreSQL die at once; another takes over when the lock expires
 *   killPatroni     only Patroni dies; its PostgreSQL keeps running as a second primary until Patroni is started again
 *                   and demotes it. It must not acknowledge writes, because its synchronous standby is the new leader
 */
export const leaderFaults = ['switchOver', 'killPostmaster', 'killNode', 'killPatroni'] as const
type LeaderFault = (typeof leaderFaults)[number]

export type Patroni = {
  /**
   * Injects a fault into the leader and returns when the cluster is whole again. It counts a failover only if another
   * member leads on a new timeline, and counts any other consequences.
   */
  strike(fault: LeaderFault, count: (what: string, times?: number) => void): Promise<void>
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

  /** The cluster as seen by the first member that answers; empty if none does. */
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

  /** Waits until there is a leader with a synchronous standby and all three follow one timeline. */
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
      // The leader has every acknowledged write, so the others can be copied from it.
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
  /** Returns false if no other member takes over in time. */
  const untilAnotherLeads = async (before: Seen): Promise<boolean> => {
    const giveUpAt = Date.now() + takeoverMs
    while (Date.now() < giveUpAt) {
      const now = leaderOf(await readCluster())
      if (now && now.name !== before.name && (now.timeline ?? 0) > (before.timeline ?? 0)) return true
      await wait(lookMs)
    }
    return false
  }
  const hit: Record<LeaderFault, (node: Node) => Promise<void>> = {
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
    async strike(fault, count) {
      const before = (await untilWhole()).leader
      const struck = nodeOf(before.name)
      await hit[fault](struck)
      const isTaken = await untilAnotherLeads(before)
      if (fault === 'killPatroni' && isTaken && (await isSecondPrimary(struck)))
        count('second primary, which acknowledged nothing')
      if (fault === 'killNode' || fault === 'killPatroni') start(struck)
      const { leader, remade } = await untilWhole()
      count(isTaken ? `failover: ${fault}` : `no failover: ${fault}`)
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
    throw new Error('this fault needs a single PostgreSQL, not a cluster')
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

/** Keeps files in memory if we may mount: they survive killed processes just as well, and vanish with the run. */
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

/** Kills a postmaster, with or without its child processes. It may have exited already and its pid been reused. */
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

/** Whether the node is still a primary alongside the new leader. Throws if it acknowledges a write. */
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
    // The connection hangs in its write.
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
        // The lock is renewed twice per second, so keep little history.
        ...['--auto-compaction-mode', 'periodic', '--auto-compaction-retention', '1m'],
        ...['--snapshot-count', '5000', '--max-snapshots', '1', '--max-wals', '1'],
      ],
      `etcd-${name}`,
    ),
  )
  return { children, hosts: ports.map(({ client }) => `127.0.0.1:${client}`) }
}
