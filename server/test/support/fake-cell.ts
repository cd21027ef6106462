import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type FakeCell = {
  readonly tag: string
  readonly url: string
  /** What it was asked, but for readiness. */
  readonly asked: IncomingMessage[]
  isReady: boolean
  close(): void
}

/** A process that says which cell it is of and answers as it is told, to see what a proxy sends where. */
export async function openFakeCell(
  tag: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) =>
    void response.end(),
): Promise<FakeCell> {
  const asked: IncomingMessage[] = []
  const server = createServer((request, response) => {
    response.setHeader('x-answered-by', tag)
    if (request.url === '/readyz') return void response.writeHead(cell.isReady ? 200 : 503).end()
    asked.push(request)
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const cell: FakeCell = {
    tag,
    url: `http://127.0.0.1:${port}`,
    asked,
    isReady: true,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
  return cell
}
