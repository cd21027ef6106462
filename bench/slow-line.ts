/** The conditions of a slow phone, for Chromium. bench:page and bench:console load pages under them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export const line = {
  offline: false,
  latency: 150,
  downloadThroughput: 1_600_000 / 8,
  uploadThroughput: 750_000 / 8,
}
export const cpuSlowdown = 4

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
