import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { updateStore } from '../../../../src/stores/update.ts'
import { numberAll, reverse, tell } from '../../../checkouts/buyer-receipts/support/receipts.ts'
import { completeByHand, letTimePass, refundByHand, setStatus } from '../../../support/by-hand.ts'
import { newPayer } from '../../../support/chain/evm-payment.ts'
import { operator } from '../../../support/operator.ts'
import { openPage, type TestWallet } from './browser.ts'
import { openSvmPageShop, type PageShop, type SvmPageShop } from './page-shop.ts'

/** Every state in which a buyer can see the page, and how to get there. */
export const states = {
  open: async (scene) => {
    const page = await scene.open(await scene.create(), {
      wallets: [scene.wallet, { ...scene.wallet, name: 'Rabbit Wallet' }],
    })
    await scene.offer(page)
    return page
  },
  'no-wallet': async (scene) => await scene.open(await scene.create()),
  phone: async (scene) => await scene.open(await scene.create(), { query: 'way=phone' }),
  send: async (scene) => await scene.open(await scene.create(), { query: 'way=send' }),
  connecting: async (scene) => await scene.pay({ hang: 'eth_requestAccounts' }, 'connecting'),
  'wrong-network': async (scene) =>
    await scene.pay({ chainId: 1, hang: 'wallet_switchEthereumChain' }, 'switching'),
  sign: async (scene) => await scene.pay({ hang: 'eth_signTypedData_v4' }, 'signing'),
  settling: async (scene) => await scene.pay({ answer: 'none' }, 'settling'),
  rejected: async (scene) => await scene.pay({ refuse: { eth_signTypedData_v4: 4001 } }, 'rejected'),
  'request-pending': async (scene) => await scene.pay({ refuse: { eth_requestAccounts: -32002 } }, 'pending'),
  'too-little-money': async (scene) => await scene.pay({ key: newPayer().key }, 'funds'),
  'smart-account': async (scene) => await scene.pay({ answer: 'invalid_exact_evm_signature' }, 'smart'),
  'undeployed-wallet': async (scene) =>
    await scene.pay({ answer: 'invalid_exact_evm_payload_undeployed_smart_wallet' }, 'undeployed'),
  'chain-refused': async (scene) =>
    await scene.pay(
      { chainId: 1, refuse: { wallet_switchEthereumChain: -32603, wallet_addEthereumChain: -32601 + 1 } },
      'chain',
    ),
  'send-amount': async (scene) => {
    const id = await scene.create()
    await scene.reserve(id)
    return await scene.open(id)
  },
  euro: async (scene) => {
    const id = await scene.create()
    await scene.shop.ctx.db.query(
      `update checkouts set price_amount = '44.30', price_currency = 'EUR',
         rate = '{"source":"ecb","perBase":"1","usdPerBase":"1.0834","asOf":"2026-11-13T15:00:00Z"}',
         options = replace(options::text, '"48000000"', '"47994620"')::json where id = $1`,
      [id],
    )
    return await scene.open(id)
  },
  'two-networks': async (scene) => {
    const page = await scene.openAtBoth()
    await page.getByRole('link', { name: 'Solana' }).click()
    await page.getByRole('button', { name: 'Moon Wallet' }).waitFor()
    return page
  },
  'send-network': async (scene) => await scene.openAtBoth({ query: 'way=send' }),
  'solana-pay': async (scene) =>
    await scene.openAtBoth({
      prepare: async (shop, id) => {
        await shop.ctx.db.query(
          `insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at, reference)
           select c.id, o.network, o.asset, o."payTo", o.amount, 0, clock(), $2
           from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
           where c.id = $1 and o.network like 'solana:%'`,
          [id, `So1anaPay${id.slice(3).replace(/[0l]/g, 'x')}`],
        )
      },
    }),
  'wrong-hash': async (scene) => {
    const id = await scene.create()
    await scene.reserve(id)
    const page = await scene.open(id, { query: 'notice=invalid_hash' })
    await page.locator('.notice').waitFor()
    return page
  },
  announced: async (scene) => {
    const id = await scene.create()
    await scene.reserve(id)
    await scene.shop.ctx.db.query(
      `insert into pasted_transactions (checkout_id, network, transaction_hash, pasted_at)
       select id, options -> 0 ->> 'network', $2, clock() from checkouts where id = $1`,
      [id, `0x${'5e'.repeat(32)}`],
    )
    return await scene.open(id)
  },
  underpaid: async (scene) => {
    const id = await scene.create()
    await scene.reserve(id)
    await completeByHand(scene.shop, id)
    await setStatus(scene.shop, id, 'OPEN')
    await scene.shop.ctx.db.query("update credits set disposition = 'underpaid' where checkout_id = $1", [id])
    return await scene.open(id)
  },
  offline: async (scene) => await scene.pay({ answer: 'offline' }, 'offline'),
  unavailable: async (scene) => await scene.pay({ answer: '503' }, 'unavailable'),
  processing: async (scene) => {
    const id = await scene.create()
    await completeByHand(scene.shop, id)
    await setStatus(scene.shop, id, 'PROCESSING')
    return await scene.open(id)
  },
  completed: async (scene) => {
    const id = await scene.create()
    await completeByHand(scene.shop, id)
    return await scene.open(id)
  },
  receipt: async (scene) => await scene.open(`${await issueReceipt(scene)}/receipt`),
  'receipt-void': async (scene) => {
    const id = await issueReceipt(scene)
    await reverse(scene.shop, id)
    await numberAll(scene.shop)
    return await scene.open(`${id}/receipt`)
  },
  refunded: async (scene) => {
    const id = await scene.create()
    await completeByHand(scene.shop, id)
    await refundByHand(scene.shop, id, 'COMPLETED', 100)
    return await scene.open(id)
  },
  'refunded-part': async (scene) => {
    const id = await scene.create()
    await completeByHand(scene.shop, id)
    await refundByHand(scene.shop, id, 'COMPLETED', 25)
    await refundByHand(scene.shop, id, 'SENT', 25)
    await refundByHand(scene.shop, id, 'DECLARED', 25)
    return await scene.open(id)
  },
  'refunded-late': async (scene) => {
    const id = await scene.create()
    await completeByHand(scene.shop, id)
    await setStatus(scene.shop, id, 'EXPIRED')
    await scene.shop.ctx.db.query("update credits set disposition = 'late' where checkout_id = $1", [id])
    await refundByHand(scene.shop, id, 'COMPLETED', 100)
    return await scene.open(id)
  },
  expired: async (scene) => {
    const id = await scene.create()
    await letTimePass(scene.shop, id)
    return await scene.open(id)
  },
  canceled: async (scene) => {
    const id = await scene.create()
    await setStatus(scene.shop, id, 'CANCELED')
    return await scene.open(id)
  },
  'not-found': async (scene) => await scene.open(`ch_00${'0'.repeat(26)}`),
} satisfies Record<string, (scene: Scene) => Promise<Page>>

export type StateName = keyof typeof states

type Scene = {
  readonly shop: PageShop
  readonly wallet: TestWallet
  create(): Promise<string>
  open(id: string, options?: { wallets?: readonly TestWallet[]; query?: string }): Promise<Page>
  /** Reserves an amount for a plain transfer, without a chain that is followed. */
  reserve(id: string): Promise<void>
  /** Waits until wallets are offered. */
  offer(page: Page): Promise<void>
  /** A checkout of a store that accepts both wallet families, in a browser that has one wallet of each. */
  openAtBoth(options?: {
    prepare?: (shop: SvmPageShop, id: string) => Promise<void>
    query?: string
  }): Promise<Page>
  /** Chooses a wallet with this behaviour and waits until the page is in the given state. */
  pay(wallet: Partial<TestWallet> & { answer?: string }, state: string): Promise<Page>
}

/** Opens a page in a state, in its own browser context. Close the page's context afterwards. */
/** Settings with which receipts can be mailed. No test here sends one. */
export const mailing = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'farthing@operator.example' }

/** A paid checkout of a store with legal data, with its receipt. Returns the checkout's id. */
async function issueReceipt({ shop, create }: Scene): Promise<string> {
  await shop.ctx.db.query(
    `update stores set legal_name = 'Juniper & Pine Ltd', legal_address = $2, tax_id = 'GB123456789' where id = $1`,
    [shop.store.id, '4 Mill Lane\nBristol BS1 4TR\nUnited Kingdom'],
  )
  const id = await create()
  await completeByHand(shop, id)
  await tell(shop, id, 'checkout.completed')
  await numberAll(shop)
  return id
}

export async function openState(
  browser: Browser,
  shop: PageShop,
  name: StateName,
  options: { readonly lang?: string; readonly context?: BrowserContextOptions } = {},
): Promise<Page> {
  const wallet: TestWallet = { key: (await rich(shop)).key }
  const scene: Scene = {
    shop,
    wallet,
    create: async () =>
      await shop.create('48.00', {
        orderId: 'Order 2041',
        successRedirectUrl: 'https://shop.example/thanks',
        cancelUrl: 'https://shop.example/cart',
      }),
    async reserve(id) {
      await shop.ctx.db.query(
        `insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
         select c.id, o.network, lower(o.asset), lower(o."payTo"), o.amount + 1 + (random() * 9998)::int, 0, clock()
         from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
         where c.id = $1`,
        [id],
      )
    },
    async open(id, { wallets = [], query = '' } = {}) {
      const { openCheckout } = await openPage(browser, shop, {
        wallets,
        ...(options.context && { context: options.context }),
      })
      return await openCheckout(id, `?${query}${options.lang ? `&lang=${options.lang}` : ''}`)
    },
    async openAtBoth({ prepare = async () => {}, query = '' } = {}) {
      const both = await openBoth()
      const id = await both.create('48.00', { orderId: 'Order 2041' })
      await prepare(both, id)
      const { openCheckout } = await openPage(browser, both, {
        wallets: [wallet],
        standardWallets: [{ signer: await both.chain.payer() }],
        ...(options.context && { context: options.context }),
      })
      return await openCheckout(id, `?${query}${options.lang ? `&lang=${options.lang}` : ''}`)
    },
    offer: async (page) => await page.locator('#wallets button').first().waitFor(),
    async pay({ answer, ...how }, state) {
      const page = await scene.open(await scene.create(), { wallets: [{ ...wallet, ...how }] })
      if (answer !== undefined) await answerPayments(page, answer)
      await page.locator('#wallets button').first().click()
      await page.locator(`[data-state=${state}]`).waitFor()
      return page
    },
  }
  return await states[name](scene)
}

/** Answers payments in place of the server with rare answers: none at all, an outage, a refusal. */
async function answerPayments(page: Page, answer: string): Promise<void> {
  await page.route('**/pay/*', async (route) => {
    if (route.request().method() !== 'POST') return await route.continue()
    if (answer === 'none') return
    if (answer === 'offline') return await route.abort()
    const [status, body] = answer === '503' ? [503, {}] : [402, { error: answer }]
    await route.fulfill({ status, json: body })
  })
}

let both: Promise<SvmPageShop> | undefined

function openBoth(): Promise<SvmPageShop> {
  both ??= openSvmPageShop({ isOnEvm: true, isLive: true, worker: false }).then(async (shop) => {
    await updateStore(shop.ctx, shop.store.id, operator, { name: 'Juniper & Pine' }, shop.ctx.now())
    return shop
  })
  return both
}

let payer: ReturnType<PageShop['fund']> | undefined

function rich(shop: PageShop) {
  payer ??= shop.fund()
  return payer
}
