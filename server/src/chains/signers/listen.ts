import { once } from 'node:events'
import { chmod, lstat, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { ConfigError } from '../../config/read.ts'
import type { Log } from '../../log.ts'
import type { Network } from '../../networks.ts'
import { type Answer, LineError, openLines, type Question, readQuestion } from './protocol.ts'
import { SignRefusedError } from './signing.ts'

/** A key that answers for its account. Throws a SignRefusedError for what it must not sign. */
export type Holder = {
  readonly address: string
  answer(network: Network, asked: unknown): Promise<string>
}

/** Each `work` has one connection. The rest are for `doctor` and operators. */
const connectionsMax = 64

/**
 * Answers questions at a socket that only its own user can reach, or also its group with mode 660. Returns a function
 * that stops it.
 */
export async function listenForQuestions(options: {
  readonly path: string
  readonly mode: number
  readonly holders: readonly Holder[]
  readonly networks: readonly Network[]
  readonly log: Log
}): Promise<() => Promise<void>> {
  const { path, mode } = options
  await removeStale(path)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    converse(options, socket).catch((error) => {
      // The client went away, or the connection broke. A process that still needs the answer asks again.
      options.log.debug({ err: error }, 'a connection to the signer ended')
      socket.destroy()
    })
  })
  server.maxConnections = connectionsMax
  // Until the mode is set, this keeps other users from connecting.
  const umask = process.umask(0o177)
  try {
    server.listen(path)
    await once(server, 'listening')
  } finally {
    process.umask(umask)
  }
  await chmod(path, mode)
  const { mode: found } = await lstat(path)
  if ((found & 0o777) !== mode)
    throw new ConfigError(`The mode of ${path} cannot be set: others may reach it.`)
  return async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
}

/**
 * Removes the socket of a process that was killed. Refuses to replace the socket of a running signer, or another kind
 * of file.
 */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null)
  if (!found) return
  if (!found.isSocket())
    throw new ConfigError(`SIGNER_SOCKET (${path}) is not a socket. Choose another path.`)
  const probe = connect(path)
  const isAlive = await new Promise<boolean>((resolve) => {
    probe.once('connect', () => resolve(true)).once('error', () => resolve(false))
  })
  probe.destroy()
  if (isAlive) throw new ConfigError(`Another signer answers at ${path}. Stop it first.`)
  await rm(path)
}

type Judge = Pick<Parameters<typeof listenForQuestions>[0], 'holders' | 'networks' | 'log'>

async function converse(judge: Judge, socket: Socket): Promise<void> {
  const cut = openLines()
  const say = async (answer: Answer) => {
    // If a client does not read its answers, it gets no more of them.
    if (!socket.write(`${JSON.stringify(answer)}\n`)) await once(socket, 'drain')
  }
  for await (const chunk of socket) {
    let lines: string[]
    try {
      lines = cut(chunk as Buffer)
    } catch (error) {
      if (!(error instanceof LineError)) throw error
      return await refuseLine(judge, socket, error.message)
    }
    for (const line of lines) {
      const question = readQuestion(line)
      if (!question) return await refuseLine(judge, socket, 'it is not a question')
      await say(await answer(judge, question))
    }
  }
}

async function refuseLine({ log }: Judge, socket: Socket, refusal: string): Promise<void> {
  log.warn(
    { reason: refusal },
    'a client of the signer sent something that is not a question, and was disconnected',
  )
  socket.end(`${JSON.stringify({ id: null, refusal } satisfies Answer)}\n`)
}

async function answer({ holders, networks, log }: Judge, question: Question): Promise<Answer> {
  const { id } = question
  if ('list' in question) return { id, addresses: holders.map(({ address }) => address) }
  const { address, network: caip2, sign } = question
  const holder = holders.find((one) => one.address === address)
  const network = networks.find((one) => one.caip2 === caip2)
  try {
    if (!network) throw new SignRefusedError(`${caip2} is not one of its networks: see NETWORKS`)
    if (!holder) throw new SignRefusedError('it does not hold the key of this account: see SETTLER_KEYS_FILE')
    return { id, signature: await holder.answer(network, sign) }
  } catch (error) {
    if (!(error instanceof SignRefusedError)) throw error
    log.warn({ network: network?.id ?? caip2, settler: address, reason: error.message }, 'refused to sign')
    return { id, refusal: error.message }
  }
}
