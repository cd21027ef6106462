import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request as send } from 'node:http'
import { connect, isIPv6 } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { freePort } from './free-port.ts'
import { until } from './until.ts'

export type ProxiedCell = {
  readonly tag: string
  /** The URL of each serve process. */
  readonly servers: readonly string[]
  /** The console's listener of each of these processes, in the same order. */
  readonly console?: { readonly host: string; readonly servers: readonly string[] }
}

type ProxyOptions = {
  readonly cells: readonly ProxiedCell[]
  /** Requests per second, and connections per address. Without them there is no limit that a test would meet. */
  readonly limits?: { readonly key?: number; readonly address?: number; readonly connections?: number }
  /** Where new stores sign up: the host that strangers open, and the URL of the console that takes them. */
  readonly signUp?: { readonly host: string; readonly url: string }
}

type AskOptions = {
  readonly headers?: Readonly<Record<string, string>>
  /** The client's address. */
  readonly from?: string
}

type ProxyAnswer = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const shipped = new URL('../../../ops/haproxy/haproxy.cfg', import.meta.url)
const unlimited = 1_000_000

/**
 * HAProxy with the shipped configuration in front of cells, on a loopback port without TLS. It ends with `close`, or with
 * this process at the latest.
 */
export async function openProxy(options: ProxyOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-proxy-'))
  const port = await freePort()
  const config = join(folder, 'haproxy.cfg')
  const cellsConfig = join(folder, 'cells.cfg')
  const log = join(folder, 'access.log')
  const adminSocket = join(folder, 'admin.sock')
  const masterSocket = join(folder, 'master.sock')
  /** Takes connections on behalf of any address. */
  const relayedSocket = join(folder, 'relayed.sock')
  let current = options
  const write = () => {
    writeFileSync(config, onLoopback(readFileSync(shipped, 'utf8'), port, relayedSocket))
    writeFileSync(cellsConfig, current.cells.map(backendsOf).join('\n') + anyOf(current.cells))
    writeMaps(folder, current)
  }
  write()
  const { key = unlimited, address = unlimited, connections = unlimited } = options.limits ?? {}
  const child = spawn('haproxy', ['-W', '-S', masterSocket, '-f', config, '-f', cellsConfig], {
    stdio: ['ignore', openSync(log, 'a'), 'pipe'],
    env: {
      PATH: `${process.env.PATH}:/usr/sbin`,
      MAPS: folder,
      SIGN_UP_HOST: options.signUp?.host ?? 'sign-up.invalid',
      ADDRESS_REQUESTS_PER_SECOND: `${address}`,
      KEY_REQUESTS_PER_SECOND: `${key}`,
      CONNECTIONS: '4000',
      CONNECTIONS_PER_ADDRESS: `${connections}`,
      LOG: 'stdout',
      ADMIN_SOCKET: adminSocket,
      PEER: `127.0.0.1:${await freePort()}`,
    },
  })
  const stop = () => void child.kill('SIGTERM')
  process.once('exit', stop)
  let output = ''
  child.stderr?.on('data', (chunk) => {
    output += chunk
  })
  let isOver = false
  child.once('exit', () => {
    isOver = true
  })
  /** Whether it has loaded its configuration since it had said this much. */
  const untilLoaded = (from: number) =>
    until('HAProxy has loaded its configuration', async () => {
      const said = output.slice(from)
      assert(!isOver && !said.includes('[ALERT]'), `HAProxy refuses its configuration:\n${said}`)
      // It loses signals until it answers here.
      return said.includes('Loading success') && (await isAnswering(masterSocket))
    })
  try {
    await untilLoaded(0)
  } catch (error) {
    stop()
    throw error
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    /** With cells.map, consoles.map and placement.map in it. */
    folder,
    pid: child.pid as number,
    /** Asks it as a client at 127.0.0.1, or at another address, would. */
    async ask(method: string, path: string, { headers = {}, from }: AskOptions = {}): Promise<ProxyAnswer> {
      const family = isIPv6(from ?? '') ? ['TCP6', '::1'] : ['TCP4', '127.0.0.1']
      const relay = () => {
        const socket = connect(relayedSocket)
        socket.write(`PROXY ${family[0]} ${from} ${family[1]} 4444 443\r\n`)
        return socket
      }
      return await new Promise((resolve, reject) => {
        const way =
          from === undefined ? { host: '127.0.0.1', port, agent: false } : { createConnection: relay }
        const request = send({ path, method, headers, ...way }, (response) => {
          let body = ''
          response.on('data', (chunk) => {
            body += chunk
          })
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
          )
          response.on('error', reject)
        })
        request.on('error', reject)
        request.end()
      })
    },
    /** What it says to a command on its administration socket. */
    command: async (text: string): Promise<string> => await order(adminSocket, text),
    /** One line per request. */
    readLog: () => readFileSync(log, 'utf8'),
    /** Loads the configuration again, with other cells if any are named, while open connections go on. */
    async reload(cells: readonly ProxiedCell[] = current.cells): Promise<void> {
      current = { ...current, cells }
      write()
      const from = output.length
      child.kill('SIGUSR2')
      await untilLoaded(from)
    },
    async close(): Promise<void> {
      process.off('exit', stop)
      if (!isOver) {
        stop()
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true })
    },
  }
}

const isAnswering = async (path: string) =>
  await order(path, 'show proc').then(
    (text) => text.includes('worker'),
    () => false,
  )

async function order(path: string, text: string): Promise<string> {
  const socket = connect(path)
  socket.end(`${text}\n`)
  return await readText(socket)
}

/** The shipped file, but for its addresses, its certificate, and the user that it turns into. */
function onLoopback(text: string, port: number, relayedSocket: string): string {
  const binds = text.match(/^ {4}bind .*$/gm) ?? []
  assert.deepEqual(
    binds.map((line) => line.trim().split(' ')[1]),
    [':80', ':::80', ':443', ':::443'],
  )
  const instead = `    bind 127.0.0.1:${port}\n    bind unix@${relayedSocket} accept-proxy\n`
  return text
    .replaceAll(/^ {4}(user|group|chroot) .*\n/gm, '')
    .replaceAll(/^ {4}bind .*\n/gm, (line) => (line.startsWith('    bind :443 ') ? instead : ''))
}

const placeOf = (url: string) => new URL(url).host

function backendsOf({ tag, servers, console }: ProxiedCell): string {
  const lines = servers.map((url, i) => `    server s${i} ${placeOf(url)} check\n`)
  const consoleLines = console?.servers.map(
    (url, i) => `    server s${i} ${placeOf(url)} track cell_${tag}/s${i}\n`,
  )
  return [
    `backend cell_${tag}\n    balance leastconn\n${lines.join('')}`,
    ...(consoleLines ? [`backend console_${tag}\n    balance leastconn\n${consoleLines.join('')}`] : []),
  ].join('\n')
}

function anyOf(cells: readonly ProxiedCell[]): string {
  const most = Math.max(...cells.map(({ servers }) => servers.length))
  const lines = Array.from({ length: most }, (_, i) =>
    cells.flatMap(({ tag, servers }) => {
      const url = servers[i]
      return url === undefined ? [] : `    server s${i}_${tag} ${placeOf(url)} track cell_${tag}/s${i}\n`
    }),
  ).flat()
  return `\nbackend any\n    retries ${lines.length - 1}\n${lines.join('')}`
}

function writeMaps(folder: string, { cells, signUp }: ProxyOptions): void {
  const consoles = cells.flatMap(({ tag, console }) => (console ? `${console.host} console_${tag}\n` : []))
  writeFileSync(join(folder, 'cells.map'), cells.map(({ tag }) => `${tag} cell_${tag}\n`).join(''))
  writeFileSync(join(folder, 'consoles.map'), consoles.join(''))
  writeFileSync(join(folder, 'placement.map'), signUp ? `new ${signUp.url}\n` : '')
}
