import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openReference, placeMulticall } from '../../../server/test/payments/evm/support/sides.ts'
import { atEnd } from '../../../server/test/support/at-end.ts'
import type { Shop } from '../../../server/test/support/shop.ts'

/** Replaces what the seller answers to its requests, by their count. Null lets the stock server answer. */
export type Meddle = (
  header: string | undefined,
  response: ServerResponse,
  count: number,
) => Promise<boolean | null> | boolean | null

/** Something that the stock x402 server sells for one dollar, on the chain of a shop. */
export async function openStockSeller(shop: Shop) {
  await placeMulticall(shop)
  const { terms, send } = await (await openReference(shop)).open()

  /** It on a port, for requests of any method. */
  async function openSeller(meddle: Meddle = () => null) {
    const seen: { readonly header: string | undefined; readonly body: string; readonly method: string }[] = []
    const answer = async (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const header = request.headers['payment-signature']?.toString()
      seen.push({ header, body: Buffer.concat(chunks).toString(), method: request.method ?? '' })
      if (await meddle(header, response, seen.length)) return
      const { status, required, response: paid, body } = await send(header)
      if (required !== undefined) response.setHeader('payment-required', required)
      if (paid !== undefined) response.setHeader('payment-response', paid)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}))
    }
    const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    atEnd(() => {
      server.close()
      server.closeAllConnections()
    })
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/weather?city=Rome`, seen }
  }

  return { terms, send, openSeller }
}
