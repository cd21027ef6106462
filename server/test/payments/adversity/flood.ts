/**
 * One request, many times at once: its bytes are prepared and pipelined, so that the server is busy and not its client.
 * Answers are counted by what they say.
 */
import { connect } from 'node:net'

/**
 * Requests on one socket that are not answered yet. All of them together are less than what Node reads at once: one that
 * is cut in two, on a machine too busy to read on for five seconds, is taken for a slow sender and refused with 408.
 */
const depth = 20

/** `copies` over so many sockets, which are spread over the addresses. */
export async function flood(
  addresses: readonly string[],
  path: string,
  header: string,
  { copies, sockets }: { readonly copies: number; readonly sockets: number },
): Promise<Map<string, number>> {
  const tally = new Map<string, number>()
  const counts = Array.from({ length: sockets }, (_, i) => Math.floor((copies + i) / sockets))
  await Promise.all(
    counts.map(async (count, i) => {
      const { hostname, port, host } = new URL(addresses[i % addresses.length] ?? '')
      const request = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nPAYMENT-SIGNATURE: ${header}\r\n\r\n`
      await exchange({ host: hostname, port: Number.parseInt(port, 10) }, request, count, tally)
    }),
  )
  return tally
}

function exchange(
  place: { host: string; port: number },
  request: string,
  count: number,
  tally: Map<string, number>,
): Promise<void> {
  if (count === 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    let rest = ''
    let left = count
    const socket = connect(place)
    socket.on('error', reject)
    socket.on('close', () =>
      reject(new Error(`closed with ${left} of ${count} unanswered: ${[...tally.keys()]}`)),
    )
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1')
      for (;;) {
        const bodyAt = rest.indexOf('\r\n\r\n') + 4
        if (bodyAt < 4) return
        const head = rest.slice(0, bodyAt)
        const end = bodyAt + Number.parseInt(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? '', 10)
        if (Number.isNaN(end)) return void reject(new Error(head))
        if (rest.length < end) return
        const kind = kindOf(head, rest.slice(bodyAt, end))
        tally.set(kind, (tally.get(kind) ?? 0) + 1)
        rest = rest.slice(end)
        if (--left >= depth) socket.write(request)
        if (left > 0) continue
        resolve()
        return void socket.destroy()
      }
    })
    socket.write(request.repeat(Math.min(count, depth)))
  })
}

/** "200" with what was settled; any other status with the code of its problem. */
function kindOf(head: string, body: string): string {
  const status = head.slice(9, 12)
  if (status === '200') return `200 ${/\r\npayment-response: (\S+)/i.exec(head)?.[1]}`
  return status === '202' ? status : `${status} ${/"code":"(\w+)"/.exec(body)?.[1] ?? body}`
}
