import pg from 'pg'

/**
 * Wake-ups between processes: "check again", without saying what changed. They only save waiting: every listener also
 * checks by itself twice per second, and after every reconnect. NOTIFY locks the whole database when its transaction
 * commits, so it is never part of a transaction that does anything else, and a process sends at most one per channel
 * every 20 ms.
 */
export type WakeUps = {
  send(channel: Channel): void
  /** Calls `look` on every wake-up, ours or another process's, until the returned function is called. */
  listen(channel: Channel, look: () => void): () => void
  close(): Promise<void>
}

/**
 * claims: there is something to settle, or a buyer may be about to pay. outcomes: a payment was settled or never will
 * be. events: logs of stores have grown, or there is something to deliver. decisions: stores have decided about
 * payments.
 */
export type Channel = 'claims' | 'outcomes' | 'events' | 'decisions'

const spacingMs = 20
const reconnectMs = 500

export function openWakeUps(
  connection: pg.ClientConfig,
  run: (text: string, values: unknown[]) => Promise<unknown>,
): WakeUps {
  const listeners = new Map<Channel, Set<() => void>>()
  const pending = new Set<Channel>()
  let timer: NodeJS.Timeout | null = null
  let client: pg.Client | null = null
  let reconnect: NodeJS.Timeout | null = null
  let isClosed = false

  function wake(channel: Channel): void {
    for (const look of listeners.get(channel) ?? []) look()
  }

  /** Sends the pending wake-ups now; those that arrive in the next 20 ms are sent together after that. */
  function flush(): void {
    timer = pending.size > 0 ? setTimeout(flush, spacingMs) : null
    for (const channel of pending) {
      // A lost wake-up costs half a second, and the statement that matters has already committed.
      run('select pg_notify($1, $2)', [`farthing_${channel}`, '']).catch(() => {})
    }
    pending.clear()
  }

  async function connect(): Promise<void> {
    const fresh = new pg.Client({ ...connection, pipeline: true })
    client = fresh
    const again = () => {
      if (client !== fresh || isClosed) return
      client = null
      reconnect = setTimeout(() => void connect(), reconnectMs)
      reconnect.unref()
    }
    fresh.on('error', again)
    fresh.on('end', again)
    fresh.on('notification', ({ channel }) => wake(channel.slice('farthing_'.length) as Channel))
    try {
      await fresh.connect()
      for (const channel of listeners.keys()) await fresh.query(`listen farthing_${channel}`)
      // Wake-ups sent before we listened are lost, so check once.
      for (const channel of listeners.keys()) wake(channel)
    } catch {
      again()
    }
  }

  return {
    send(channel) {
      wake(channel)
      pending.add(channel)
      if (!timer) flush()
    },
    listen(channel, look) {
      const looks = listeners.get(channel) ?? new Set()
      const isNew = looks.size === 0
      listeners.set(channel, looks.add(look))
      if (!client) void connect()
      else if (isNew) client.query(`listen farthing_${channel}`).catch(() => {})
      return () => void looks.delete(look)
    },
    async close() {
      isClosed = true
      if (timer) clearTimeout(timer)
      if (reconnect) clearTimeout(reconnect)
      await client?.end().catch(() => {})
    },
  }
}
