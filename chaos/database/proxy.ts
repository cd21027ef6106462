import { createServer, connect as dial, type Socket } from 'node:net'
import { freePort } from './database.ts'

/**
 * A proxy between the processes and PostgreSQL that knows enough of the protocol to lose the reply to a commit. That can
 * be a COMMIT or a single writing statement: once PostgreSQL reports after a write that it is ready and idle, the write
 * is durable. At that moment the proxy cuts the connection, and the process cannot know whether it was committed.
 *
 * A message is a letter, a four-byte length that includes itself, and a body; a client's first message has no letter.
 * Statements are prepared (P) once under a name and bound (B) by it; Q is a simple query; S is a sync; Z means ready.
 */
type Loss = 'reply' | 'request' | null

export async function openDatabaseProxy(target: { readonly port: number }) {
  const proxy = {
    port: await freePort(),
    /** Decide what to lose from the next write. If there are several, the newest decides. */
    choosers: new Set<() => Loss>(),
    lostReplies: 0,
    lostRequests: 0,
    writes: 0,
  }
  const sockets = new Set<Socket>()

  const server = createServer((client) => {
    const upstream = dial(target.port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    }
    const cut = () => {
      client.destroy()
      upstream.destroy()
    }
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())

    const writing = new Map<string, boolean>()
    /** The requests between two syncs, oldest first: whether each wrote, and what to lose from it. */
    const asked: { isWrite: boolean; loss: Loss }[] = []
    let isWriteSoFar = false
    const fromClient = readMessages(true, (type, body) => {
      if (type === 'P') {
        const [name = '', text = ''] = body.toString('latin1').split('\0')
        writing.set(name, isWrite(text))
        isWriteSoFar ||= name === '' && isWrite(text)
      } else if (type === 'B') {
        const [, name = ''] = body.toString('latin1', 0, 200).split('\0')
        isWriteSoFar ||= writing.get(name) ?? false
      } else if (type === 'S' || type === 'Q') {
        const wrote = isWriteSoFar || (type === 'Q' && isWrite(body.toString('latin1', 0, 200)))
        isWriteSoFar = false
        const loss = wrote ? ([...proxy.choosers].at(-1)?.() ?? null) : null
        if (wrote) proxy.writes++
        asked.push({ isWrite: wrote, loss })
        if (loss === 'request') return false
      }
      return true
    })
    let isLossDue = false
    const fromServer = readMessages(false, (type, body) => {
      if (type !== 'Z') return true
      const state = String.fromCharCode(body[0] ?? 0)
      const { loss = null } = asked.shift() ?? {}
      isLossDue ||= loss === 'reply'
      const isDurable = state === 'I'
      return !(isLossDue && isDurable)
    })

    client.on('data', (chunk) => {
      if (!fromClient(chunk)) {
        proxy.lostRequests++
        return cut()
      }
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (!fromServer(chunk)) {
        proxy.lostReplies++
        return cut()
      }
      client.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(proxy.port, '127.0.0.1', resolve))
  return Object.assign(proxy, {
    cutAll(): void {
      for (const socket of sockets) socket.destroy()
    },
    close(): void {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  })
}

function isWrite(text: string): boolean {
  return /\b(insert into|update|delete from|commit)\b/i.test(text)
}

/** Splits a stream into messages. Returns false as soon as the reader returns false for one. */
function readMessages(hasStart: boolean, read: (type: string, body: Buffer) => boolean) {
  let rest: Buffer = Buffer.alloc(0)
  let isStarted = !hasStart
  return (chunk: Buffer): boolean => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const head = isStarted ? 1 : 0
      if (rest.length < head + 4) return true
      const length = rest.readInt32BE(head)
      if (rest.length < head + length) return true
      const type = isStarted ? String.fromCharCode(rest[0] ?? 0) : ''
      const body = rest.subarray(head + 4, head + length)
      rest = rest.subarray(head + length)
      isStarted = true
      if (!read(type, body)) return false
    }
  }
}
