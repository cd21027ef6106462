import { createServer, connect as dial, type Socket } from 'node:net'
import { freePort } from './database.ts'

/**
 * Stands between the processes and PostgreSQL and knows enough of its protocol to lose the reply to a commit. Every
 * write is one, whether it is a COMMIT or a single statement: when PostgreSQL says that it is ready and idle after a
 * write, the write is durable. At that moment the connection is cut, and the process cannot know.
 *
 * Messages are a letter, a length of four bytes that counts itself, and a body; the first message of a client has no
 * letter. Statements are prepared (P) once under a name and bound (B) by it; Q is a simple query; Z is ready for query.
 */
type Loss = 'reply' | 'request' | null

export async function openDatabaseProxy(target: { readonly port: number }) {
  const proxy = {
    port: await freePort(),
    /** What to lose of the next write. Of several, the newest says. */
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
    /** What was asked between two syncs, oldest first: whether it wrote, and whether its reply is to be lost. */
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

/** Splits a stream into messages. False as soon as the reader says so of one. */
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
