import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port that nothing listens on now. It is below those that Linux gives to outgoing connections, so no connection takes
 * it before its owner listens, and above those that browsers refuse.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (isFree) await new Promise((resolve) => server.close(resolve))
  return isFree
}
