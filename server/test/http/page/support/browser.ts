import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import {
  getTransactionDecoder,
  getTransactionEncoder,
  type KeyPairSigner,
  partiallySignTransaction,
  signBytes,
} from '@solana/kit'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { atEnd } from '../../../support/at-end.ts'
import { type Wrapper, wrap } from '../../../support/chain/evm-payment.ts'
import type { SmartWallet } from '../../../support/chain/smart-wallets.ts'
import { patienceMs } from '../../../support/patience.ts'

const walletScript = await readFile(new URL('wallet.js', import.meta.url), 'utf8')
const standardWalletScript = await readFile(new URL('standard-wallet.js', import.meta.url), 'utf8')

/** A real browser, one per test file. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  atEnd(() => browser.close())
  return browser
}

export type TestWallet = {
  readonly key: Hex
  /** The address, if it is not the key's own: a contract wallet. */
  readonly account?: string
  /** How it signs a text, if not with its key alone: a contract wallet. */
  readonly signText?: (text: string) => Promise<Hex>
  /** The same for typed data. */
  readonly signTyped?: SmartWallet['signTyped']
  /** Wraps its signatures by ERC-6492. */
  readonly wrapper?: Wrapper
  readonly name?: string
  readonly chainId?: number
  readonly known?: readonly number[]
  /** Does not announce itself until `announceWallet()` is called. */
  readonly late?: boolean
  /** Only sets `window.ethereum`. */
  readonly isLegacy?: boolean
  /** A method that never answers. */
  readonly hang?: string
  /** Signs only when `answerWallet()` is called. */
  readonly slow?: boolean
  /** Methods that fail with a code. */
  readonly refuse?: Readonly<Record<string, number>>
}

/** A Wallet Standard wallet for Solana. */
export type StandardTestWallet = {
  readonly signer: KeyPairSigner
  readonly name?: string
  readonly chains?: readonly string[]
  /** Does not announce itself until `announceStandardWallet()` is called. */
  readonly late?: boolean
  /** A feature that never answers. */
  readonly hang?: string
  /** Features that fail with a message. */
  readonly refuse?: Readonly<Record<string, string>>
}

const base = 8453

/** Wallets for every page of a context. Returns what they are asked to sign, as it comes. */
export async function giveWallets(
  context: BrowserContext,
  chainUrl: string,
  wallets: readonly TestWallet[],
): Promise<string[]> {
  const signed: string[] = []
  await context.exposeFunction('walletSign', async (id: number, typed: string) => {
    signed.push(typed)
    const { key, wrapper, signTyped } = wallets[id] ?? assert.fail('no such wallet')
    const account = privateKeyToAccount(key)
    const { domain, types, primaryType, message } = JSON.parse(typed)
    const { EIP712Domain: _, ...named } = types
    const data = { domain, types: named, primaryType, message }
    const signature = signTyped ? await signTyped(data) : await account.signTypedData(data)
    return wrapper ? wrap(signature, wrapper) : signature
  })
  await context.exposeFunction('walletSignText', async (id: number, bytes: Hex) => {
    const text = Buffer.from(bytes.slice(2), 'hex').toString()
    signed.push(text)
    const { key, signText } = wallets[id] ?? assert.fail('no such wallet')
    return signText ? await signText(text) : await privateKeyToAccount(key).signMessage({ message: text })
  })
  await context.exposeFunction('walletCall', async (params: unknown) => {
    const response = await fetch(chainUrl, {
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
      signText: undefined,
      signTyped: undefined,
    }
    await context.addInitScript(`(() => {${walletScript}\ninstallWallet(${JSON.stringify(setting)})})()`)
  }
  return signed
}

/** The same for wallets on Solana. */
export async function giveStandardWallets(
  context: BrowserContext,
  wallets: readonly StandardTestWallet[],
  signed: string[] = [],
): Promise<void> {
  const signerOf = (id: number) => (wallets[id] ?? assert.fail('no such wallet')).signer
  await context.exposeFunction('standardWalletSign', async (id: number, bytes: number[]) => {
    signed.push(Buffer.from(bytes).toString('base64'))
    const transaction = getTransactionDecoder().decode(Uint8Array.from(bytes))
    const whole = await partiallySignTransaction([signerOf(id).keyPair], transaction)
    return [...getTransactionEncoder().encode(whole)]
  })
  await context.exposeFunction('standardWalletSignMessage', async (id: number, bytes: number[]) => {
    signed.push(Buffer.from(bytes).toString())
    return [...(await signBytes(signerOf(id).keyPair.privateKey, Uint8Array.from(bytes)))]
  })
  for (const [id, wallet] of wallets.entries()) {
    const setting = {
      id,
      name: 'Moon Wallet',
      address: wallet.signer.address,
      chains: ['solana:mainnet', 'solana:localnet'],
      ...wallet,
      signer: undefined,
    }
    await context.addInitScript(
      `(() => {${standardWalletScript}\ninstallStandardWallet(${JSON.stringify(setting)})})()`,
    )
  }
}

/** Opens pages in their own browser context, and collects what they request, sign and complain about. */
export async function openPage(
  browser: Browser,
  shop: { readonly url: string; readonly chain: { readonly url: string } },
  options: {
    wallets?: readonly TestWallet[]
    standardWallets?: readonly StandardTestWallet[]
    context?: BrowserContextOptions
  } = {},
) {
  const context = await browser.newContext({ locale: 'en-US', ...options.context })
  context.setDefaultTimeout(patienceMs)
  const complaints: string[] = []
  const requests: string[] = []
  const wallets = options.wallets ?? []
  const signed = await giveWallets(context, shop.chain.url, wallets)
  await giveStandardWallets(context, options.standardWallets ?? [], signed)
  const open = async (address: string): Promise<Page> => {
    const page = await context.newPage()
    page.on('console', (message) => {
      // 402 and 409 are expected answers, which browsers log as errors.
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
    /** Typed data and transactions that a wallet was asked to sign. */
    signed,
    /** Script errors, and violations of the page's policy. */
    complaints,
    requests,
    open,
    openCheckout: async (id: string, query = '') => await open(`${shop.url}/${id}${query}`),
  }
}
