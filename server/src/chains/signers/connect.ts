import { lstatSync } from 'node:fs'
import { connect as connectSocket, type Socket } from 'node:net'
import { type Answer, openLines, readAnswer } from './protocol.ts'
import { type Ask, SignerAwayError, SignRefusedError } from './signing.ts'

/** The connection of one process to `signer`. It reconnects by itself. */
export type SignerClient = {
  readonly ask: Ask
  /** The accounts whose keys the signer holds. Waits for the connection. */
  list(): Promise<readonly string[]>
  readonly isAway: () => boolean
  close(): void
}

/** Signing takes milliseconds. The asking process holds locks on rows, for which others wait 5 s. */
const answerMs = 4_000
const reconnectMs = 200

export function connectToSigner(path: string, answerTimeoutMs = answerMs): SignerClient {
  const waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>()
  let socket: Socket | null = null
  let isOpen = false
  let isClosed = false
  let reason = 'it has not answered yet'
  let last = 0
  let reconnect: NodeJS.Timeout | null = null
  let opened = Promise.withResolvers<void>()

  function open(): void {
    const mistake = findMistake(path)
    if (mistake !== null) {
      leave(mistake)
      return
    }
    // A connection that nothing waits for must not keep a command running.
    const fresh = connectSocket(path).unref()
    socket = fresh
    const cut = openLines()
    fresh.on('connect', () => {
      isOpen = true
      reason = 'the connection ended'
      opened.resolve()
    })
    fresh.on('data', (chunk) => {
      try {
        for (const line of cut(chunk)) receive(line)
      } catch (error) {
        fresh.destroy(error as Error)
      }
    })
    fresh.on('error', (error) => {
      reason = error.message
    })
    fresh.on('close', () => socket === fresh && leave(reason))
  }

  function receive(line: string): void {
    const answer = readAnswer(line)
    if (!answer) throw new Error('it answers with something that is not its protocol')
    // An answer without an id ends the connection, and everything that waits on it is rejected.
    if (answer.id === null)
      throw new Error(`it refuses the connection: ${'refusal' in answer && answer.refusal}`)
    waiting.get(answer.id)?.resolve(answer)
  }

  /** Drops the connection, and rejects every question that waits for an answer. */
  function leave(why: string): void {
    reason = why
    if (isOpen) opened = Promise.withResolvers()
    isOpen = false
    socket = null
    for (const { reject } of waiting.values()) reject(away())
    if (!isClosed) reconnect = setTimeout(open, reconnectMs).unref()
  }

  function away(): SignerAwayError {
    return new SignerAwayError(`the signer at ${path} cannot be reached: ${reason}`)
  }

  async function request(question: object): Promise<Answer> {
    const mine = socket
    if (!mine || !isOpen) throw away()
    const id = ++last
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const giveUp = () => waiting.has(id) && mine.destroy(new Error(`no answer within ${answerTimeoutMs} ms`))
    // After a pause of this process the answer may already be there. It is read before `giveUp` runs.
    const late = setTimeout(() => setImmediate(giveUp), answerTimeoutMs)
    waiting.set(id, { resolve, reject })
    try {
      mine.write(`${JSON.stringify({ id, ...question })}\n`)
      const answer = await promise
      if ('refusal' in answer) throw new SignRefusedError(answer.refusal)
      return answer
    } finally {
      clearTimeout(late)
      waiting.delete(id)
    }
  }

  open()
  return {
    async ask(address, network, sign) {
      const answer = await request({ network, address, sign })
      if (!('signature' in answer)) throw new SignRefusedError('the signer answered another question')
      return answer.signature
    },
    async list() {
      const late = Promise.withResolvers<never>()
      // A local socket connects at once or not at all.
      const timer = setTimeout(() => late.reject(away()), answerTimeoutMs / 4)
      await Promise.race([opened.promise, late.promise]).finally(() => clearTimeout(timer))
      const answer = await request({ list: true })
      return 'addresses' in answer ? answer.addresses : []
    },
    isAway: () => !isOpen,
    close() {
      isClosed = true
      if (reconnect) clearTimeout(reconnect)
      socket?.destroy()
    },
  }
}

/** Why this socket must not be trusted, or null. Any process that can write to it could also ask for signatures. */
function findMistake(path: string): string | null {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return 'there is no such socket'
  if (!found.isSocket()) return 'it is not a socket'
  return (found.mode & 0o007) === 0
    ? null
    : 'every user of this machine can reach it; its mode must be 600 or 660'
}
