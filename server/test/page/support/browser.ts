import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { atEnd } from '../../support/at-end.ts'
import { freePort } from '../../support/free-port.ts'
import { openShop } from '../../support/shop.ts'

/** Slow machines are slow; what takes longer than this does not happen. */
const patienceMs = 30_000

const walletScript = await readFile(new URL('wallet.js', import.meta.url), 'utf8')

/** A real browser, one a file. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  atEnd(() => browser.close())
  return browser
}

export type PageShop = Awaited<ReturnType<typeof openPageShop>>

/** A store whose payment pages a browser can open: HTTP on a port of its own, a chain, a worker. */
export async function openPageShop(options: Parameters<typeof openShop>[0] = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/pay`
  const shop = await openShop({
    network: 'BASE_MAINNET',
    ...options,
    settings: { CHECKOUT_PAGE_URL: url, BASE_URL: `http://127.0.0.1:${port}`, ...options.settings },
  })
  await shop.app.listen({ host: '127.0.0.1', port })
  return { ...shop, url }
}

export type TestWallet = {
  readonly key: Hex
  /** Where it differs from the key's own: a contract wallet. */
  readonly account?: string
  readonly name?: string
  readonly chainId?: number
  readonly known?: readonly number[]
  /** Says nothing until `announceWallet()` is called. */
  readonly late?: boolean
  /** Only as `window.ethereum`. */
  readonly isLegacy?: boolean
  /** A method that never answers. */
  readonly hang?: string
  /** Methods that fail with a code. */
  readonly refuse?: Readonly<Record<string, number>>
}

const base = 8453

/** A page in a context of its own, that fails its test if anything is refused by the page's own policy. */
export async function openPage(
  browser: Browser,
  shop: PageShop,
  options: { wallets?: readonly TestWallet[]; context?: BrowserContextOptions } = {},
) {
  const context = await browser.newContext({ locale: 'en-US', ...options.context })
  context.setDefaultTimeout(patienceMs)
  const signed: string[] = []
  const complaints: string[] = []
  const requests: string[] = []
  const wallets = options.wallets ?? []
  await context.exposeFunction('walletSign', async (id: number, typed: string) => {
    signed.push(typed)
    const account = privateKeyToAccount(wallets[id]?.key ?? assert.fail('no such wallet'))
    const { domain, types, primaryType, message } = JSON.parse(typed)
    const { EIP712Domain: _, ...named } = types
    return await account.signTypedData({ domain, types: named, primaryType, message })
  })
  await context.exposeFunction('walletCall', async (params: unknown) => {
    const response = await fetch(shop.chain.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params }),
    })
    return ((await response.json()) as { result: string }).result
  })
  for (const [id, wallet] of wallets.entries()) {
    const setting = {
      id,
      name: 'Fox Wallet',
      account: privateKeyToAccount(wallet.key).address,
      chainId: base,
      known: [1, base],
      ...wallet,
      key: undefined,
    }
    await context.addInitScript(`(() => {${walletScript}\ninstallWallet(${JSON.stringify(setting)})})()`)
  }
  const open = async (address: string): Promise<Page> => {
    const page = await context.newPage()
    page.on('console', (message) => {
      // A 402 or 409 is an answer, which browsers write in red.
      if (message.type() === 'error' && !/status of (402|409)/.test(message.text()))
        complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('request', (request) => requests.push(request.url()))
    await page.goto(address)
    return page
  }
  return {
    context,
    /** Typed data that a wallet signed. */
    signed,
    /** Errors of scripts, and refusals of the page's policy. */
    complaints,
    requests,
    open,
    openCheckout: async (id: string, query = '') => await open(`${shop.url}/${id}${query}`),
  }
}
