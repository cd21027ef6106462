import { join } from 'node:path'

/** The configuration of one Patroni. It is JSON, which is valid YAML. */
export function patroniConfig(node: {
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
        // The lowest values that work: Patroni 3.0 does not release its lock within a retry of one second, rounds all
        // three to whole seconds, and requires ttl ≥ loop_wait + 2 × retry_timeout.
        ttl: 5,
        loop_wait: 1,
        retry_timeout: 2,
        maximum_lag_on_failover: 1_048_576,
        // Another member takes over at once instead of waiting for the crashed one.
        primary_start_timeout: 0,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: {
          use_pg_rewind: true,
          // A slot is created only after its standby has requested it, so the standby has to wait; and a slot keeps
          // write-ahead log without limit.
          use_slots: false,
          parameters: {
            max_connections: 100,
            shared_buffers: '64MB',
            wal_level: 'replica',
            hot_standby: 'on',
            // Enough for what is written while a member is away, but no more, because pg_rewind copies all of it.
            wal_keep_size: '64MB',
            min_wal_size: '32MB',
            max_wal_size: '64MB',
            wal_retrieve_retry_interval: '250ms',
            // The others can rewind to a new leader only once it has written a checkpoint.
            checkpoint_completion_target: 0,
            wal_log_hints: 'on',
            synchronous_commit: 'on',
          },
        },
      },
      // Every new timeline starts a new segment: at 16 MB each, they would fill the disk in a long run.
      initdb: [{ encoding: 'UTF8' }, 'data-checksums', { 'wal-segsize': '1' }],
      pg_hba: ['host replication all 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: node.data,
      bin_dir: '/usr/lib/postgresql/15/bin',
      // A member that cannot be rewound copies the leader.
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

export function haproxyConfig(
  port: number,
  nodes: readonly { readonly name: string; readonly port: number; readonly api: number }[],
): string {
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
