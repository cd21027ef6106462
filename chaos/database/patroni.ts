import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type ChaosDatabase, freePort } from './database.ts'

/**
 * Three PostgreSQL under Patroni in strict synchronous mode, three etcd, and HAProxy before them, all on loopback: what
 * an acknowledged write needs to outlive the machine it was written on. Debian: apt-get install patroni etcd-server
 * haproxy. Nodes that were killed are started again and rejoin by themselves.
 */
const members = ['n1', 'n2', 'n3'] as const
const healthyMs = 120_000

type Node = {
  readonly name: string
  readonly api: number
  readonly port: number
  readonly data: string
  readonly config: string
  patroni: ChildProcess | null
}

export type Patroni = {
  /** Who leads now, if anybody does. */
  leader(): Promise<Node | null>
  switchOver(): Promise<void>
  killPostmaster(): Promise<void>
  killNode(): Promise<void>
  killPatroni(): Promise<void>
  /** Until there is a leader with a synchronous standby, and all three are there. */
  untilHealthy(): Promise<void>
}

export async function openPatroni(folder: string): Promise<ChaosDatabase> {
  const identity = (flag: string) =>
    Number.parseInt(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }), 10)
  const user = { uid: identity('-u'), gid: identity('-g') }
  const home = join(folder, 'patroni')
  mkdirSync(home)
  for (const path of [folder, home]) chownSync(path, user.uid, user.gid)
  const run = (program: string, args: readonly string[], name: string): ChildProcess => {
    const log = openSync(join(home, `${name}.log`), 'a')
    return spawn(program, args, { ...user, cwd: home, stdio: ['ignore', log, log] })
  }

  const etcds = await startEtcds(home, run)
  const nodes: Node[] = []
  for (const name of members) {
    const node = {
      name,
      api: await freePort(),
      port: await freePort(),
      data: join(home, name),
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

  const readCluster = async (): Promise<{ name: string; role: string; state: string }[]> => {
    for (const { api } of nodes) {
      const answer = await fetch(`http://127.0.0.1:${api}/cluster`, {
        signal: AbortSignal.timeout(2_000),
      }).catch(() => null)
      if (answer?.ok)
        return ((await answer.json()) as { members: { name: string; role: string; state: string }[] }).members
    }
    return []
  }
  const nodeOf = (name: string | undefined) => nodes.find((node) => node.name === name) ?? null
  const leader = async () => nodeOf((await readCluster()).find(({ role }) => role === 'leader')?.name)
  const untilHealthy = async () => {
    const giveUpAt = Date.now() + healthyMs
    for (;;) {
      const seen = await readCluster()
      const isWhole =
        seen.filter(({ state }) => state === 'running' || state === 'streaming').length === nodes.length
      if (
        isWhole &&
        seen.some(({ role }) => role === 'leader') &&
        seen.some(({ role }) => role === 'sync_standby')
      )
        return
      if (Date.now() > giveUpAt) throw new Error(`the cluster is not whole: ${JSON.stringify(seen)}`)
      await wait(300)
    }
  }
  const endPatroni = async ({ patroni }: Node) => {
    if (!patroni || patroni.exitCode !== null || patroni.signalCode !== null) return
    patroni.kill('SIGKILL')
    await once(patroni, 'exit')
  }
  const endPostmaster = ({ data }: Node) => {
    const [pid = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    process.kill(Number.parseInt(pid, 10), 'SIGKILL')
  }
  /** Does something to the leader, waits until another leads, and mends it. */
  const strike = async (hit: (node: Node) => Promise<void>, mend: (node: Node) => void) => {
    const struck = await leader()
    if (!struck) return
    await hit(struck)
    const giveUpAt = Date.now() + healthyMs
    for (;;) {
      const now = await leader()
      if (now && now !== struck) break
      if (Date.now() > giveUpAt) throw new Error(`nobody took over from ${struck.name}`)
      await wait(300)
    }
    mend(struck)
  }

  const cluster: Patroni = {
    leader,
    untilHealthy,
    switchOver: () =>
      strike(
        async ({ name, api }) => {
          const body = JSON.stringify({ leader: name })
          await fetch(`http://127.0.0.1:${api}/switchover`, { method: 'POST', body }).catch(() => null)
        },
        () => {},
      ),
    killPostmaster: () =>
      strike(
        async (node) => endPostmaster(node),
        () => {},
      ),
    killNode: () =>
      strike(async (node) => {
        await endPatroni(node)
        endPostmaster(node)
      }, start),
    killPatroni: () => strike(endPatroni, start),
  }
  await untilHealthy()

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
    async stop() {
      for (const node of nodes) {
        await endPatroni(node)
        try {
          endPostmaster(node)
        } catch {
          // It had ended before.
        }
      }
      for (const child of [haproxy, ...etcds.children]) child.kill('SIGKILL')
    },
  }
}

async function startEtcds(
  home: string,
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
        ...['--name', name, '--data-dir', join(home, `etcd-${name}`)],
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
        ttl: 10,
        loop_wait: 1,
        retry_timeout: 3,
        maximum_lag_on_failover: 1_048_576,
        // Another takes over at once instead of waiting for the one that crashed.
        primary_start_timeout: 0,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: {
          use_pg_rewind: true,
          parameters: {
            max_connections: 100,
            shared_buffers: '64MB',
            wal_level: 'replica',
            hot_standby: 'on',
            wal_keep_size: '256MB',
            wal_log_hints: 'on',
            synchronous_commit: 'on',
          },
        },
      },
      initdb: [{ encoding: 'UTF8' }, 'data-checksums'],
      pg_hba: ['host replication all 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: node.data,
      bin_dir: '/usr/lib/postgresql/15/bin',
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
  timeout check 2s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`
}
