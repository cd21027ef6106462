import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type ClientOptions, createClient } from '@farthing/sdk'
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder, getBase58Encoder } from '@solana/kit'
import { makeStore, openTestApp } from '../../../server/test/support/app.ts'
import { startDeciding } from '../../../server/test/support/decide.ts'
import { openShop, type ShopOptions } from '../../../server/test/support/shop.ts'

/** A deployment without a chain, on its own port, and a client for one of its test stores. */
export async function openStore(settings: Readonly<Record<string, string>> = {}) {
  const baseUrl = await listenLater()
  const farthing = await openTestApp({ BASE_URL: baseUrl, CHECKOUT_PAGE_URL: `${baseUrl}/pay`, ...settings })
  startDeciding(farthing)
  await listen(farthing.app, baseUrl)
  const { key, store } = await makeStore(farthing.ctx, { mode: 'test' })
  const open = (options: Partial<ClientOptions> = {}) => createClient({ apiKey: key, baseUrl, ...options })
  return { ...farthing, baseUrl, key, store, open, client: open() }
}

/** A deployment with a chain and a worker, and a client for its store. */
export async function openPaidStore(options: ShopOptions = {}) {
  const baseUrl = await listenLater()
  const shop = await openShop({
    ...options,
    settings: { BASE_URL: baseUrl, CHECKOUT_PAGE_URL: `${baseUrl}/pay`, ...options.settings },
  })
  await listen(shop.app, baseUrl)
  return { ...shop, baseUrl, client: createClient({ apiKey: shop.key, baseUrl }) }
}

/** A deployment that accepts payments on Solana, with a worker, and payers for it. */
export async function openPaidSvmStore() {
  const baseUrl = await listenLater()
  const shop = await openShop({
    network: 'SOLANA_LOCAL',
    settings: { BASE_URL: baseUrl, CHECKOUT_PAGE_URL: `${baseUrl}/pay` },
  })
  await listen(shop.app, baseUrl)
  return {
    ...shop,
    baseUrl,
    checkoutUrl: async (priceAmount: string) => `${baseUrl}/pay/${await shop.create(priceAmount)}`,
    balance: async (address: string) => await shop.chain.balance(address, shop.chain.mint),
    /** A wallet with tokens but no SOL, in the format of key files: the secret, then the public key. */
    async newKey(units = 10_000_000n) {
      const seed = crypto.getRandomValues(new Uint8Array(32))
      const { address } = await createKeyPairSignerFromPrivateKeyBytes(seed)
      await shop.chain.fund(address, { token: [shop.chain.mint, units] })
      const secret = new Uint8Array([...seed, ...getBase58Encoder().encode(address)])
      return { address, secret, base58: getBase58Decoder().decode(secret) }
    },
  }
}

export type Request = { readonly method: string; readonly path: string; readonly headers: Headers }

/** A fetch that records its requests. If `lose` returns true, the server answers but the answer does not arrive. */
export function watchedFetch(lose: (request: Request, count: number) => boolean = () => false) {
  const requests: Request[] = []
  const watched: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const { method, url, headers } = request
    const seen = { method, path: new URL(url).pathname, headers }
    requests.push(seen)
    const isLost = lose(seen, requests.length)
    const answer = await fetch(request)
    if (!isLost) return answer
    await answer.body?.cancel()
    throw new TypeError('the connection broke')
  }
  return { requests, fetch: watched }
}

/** Finds a free port, because BASE_URL must be known before the server listens. */
async function listenLater(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

async function listen(
  app: { listen(at: { host: string; port: number }): Promise<string> },
  baseUrl: string,
): Promise<void> {
  const { hostname, port } = new URL(baseUrl)
  assert.equal(await app.listen({ host: hostname, port: Number.parseInt(port, 10) }), baseUrl)
}
