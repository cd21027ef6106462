/** Many signed-in screens that update themselves, as their script does, while their store changes. */
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

export type Watched = { readonly refreshes: number; readonly failures: number }

/** Opens the streams, calls `change` at the given rate, and reloads each screen when its stream says so. */
export async function watchScreens(
  options: {
    readonly origin: string
    readonly screen: string
    readonly stream: string
    readonly cookies: readonly string[]
    readonly changesPerSecond: number
    readonly seconds: number
  },
  change: () => Promise<unknown>,
  /** Called when all streams are open, and when the time is over. */
  mark: () => void,
): Promise<Watched> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const streams: IncomingMessage[] = []
  const counted = { refreshes: 0, failures: 0 }
  let isCounting = false
  const ask = (path: string, cookie: string, headers = {}, own?: Agent) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      get(
        `${options.origin}${path}`,
        { agent: own ?? false, headers: { cookie, 'accept-encoding': 'br', ...headers } },
        resolve,
      ).on('error', reject)
    })

  async function open(cookie: string): Promise<void> {
    const stream = await ask(options.stream, cookie)
    if (stream.statusCode !== 200) throw new Error(`a stream was answered with ${stream.statusCode}`)
    streams.push(stream)
    let [newest, shown, isLoading] = ['', '', false]
    const catchUp = async () => {
      if (isLoading || newest === shown) return
      isLoading = true
      shown = newest
      const screen = await ask(options.screen, cookie, { 'x-refresh': '1' }, agent).catch(() => null)
      screen?.resume()
      if (screen) await new Promise((resolve) => screen.once('close', resolve))
      if (isCounting) counted[screen?.statusCode === 200 ? 'refreshes' : 'failures']++
      isLoading = false
      void catchUp()
    }
    stream.on('data', (chunk: Buffer) => {
      const [, last] = /data: (\d+)\n/.exec(String(chunk)) ?? []
      if (last === undefined) return
      // The screen already shows the first number.
      if (shown === '') shown = last
      newest = last
      void catchUp()
    })
    stream.on('error', () => {})
  }

  const openedAtOnce = 25
  for (let i = 0; i < options.cookies.length; i += openedAtOnce)
    await Promise.all(options.cookies.slice(i, i + openedAtOnce).map(open))
  // The effects of opening are over.
  await wait(3_000)
  mark()
  isCounting = true
  const changes = options.changesPerSecond * options.seconds
  const start = performance.now()
  for (let i = 0; i < changes; i++) {
    await change()
    const next = start + ((i + 1) * 1_000) / options.changesPerSecond
    await wait(Math.max(0, next - performance.now()))
  }
  isCounting = false
  mark()
  for (const stream of streams) stream.destroy()
  agent.destroy()
  return counted
}
