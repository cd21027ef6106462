import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { confirmAddress, judgeNamed } from '../../../../src/refunds/address-requests/confirm.ts'
import { createAddressRequest } from '../../../../src/refunds/address-requests/create.ts'
import { cancelRefund } from '../../../../src/refunds/cancel.ts'
import { readRefund } from '../../../../src/refunds/read.ts'
import { updateStore } from '../../../../src/stores/update.ts'
import { member, proveWallets, receiveByHand, refund } from '../../../refunds/support/refunds.ts'
import { openTestApp } from '../../../support/app.ts'
import { freePort } from '../../../support/free-port.ts'
import { operator } from '../../../support/operator.ts'
import { patienceMs } from '../../../support/patience.ts'
import { openStore, wallets } from '../../../support/store.ts'

export type AddressRequestShop = Awaited<ReturnType<typeof openAddressRequestShop>>

/** A store whose addressRequest pages a browser can open. */
export async function openAddressRequestShop() {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const farthing = await openTestApp({ CHECKOUT_PAGE_URL: `${origin}/pay`, BASE_URL: origin })
  const { store } = await openStore(farthing)
  const look = { name: 'Juniper & Pine', supportEmail: 'help@juniper.example' }
  await updateStore(farthing.ctx, store.id, operator, look, farthing.ctx.now())
  await proveWallets(farthing, store.id)
  await farthing.app.listen({ host: '127.0.0.1', port })
  return { ...farthing, store, origin }
}

const address = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'

/** Every state in which a buyer can see the page, and how to get there. */
export const addressRequestStates = {
  open: async (scene) => await scene.open(),
  mistaken: async (scene) => await scene.name(await scene.open(), '0x90F79bf6EB2c4f8'),
  named: async (scene) => await scene.name(await scene.open(), address),
  confirmed: async (scene) => {
    const page = await scene.name(await scene.open(), address)
    await scene.confirm()
    await page.reload()
    return page
  },
  returned: async (scene) => {
    const page = await scene.name(await scene.open(), address)
    await scene.confirm()
    await scene.shop.ctx.db.query(
      "update refunds set status = 'COMPLETED', transaction_hash = $2, completed_at = clock() where id = $1",
      [scene.id, `0x${'5e'.repeat(32)}`],
    )
    await page.reload()
    return page
  },
  used: async (scene) => {
    const thief = await scene.name(await scene.open(), address)
    await thief.context().close()
    return await scene.open()
  },
  expired: async (scene) => {
    await scene.shop.ctx.db.query('update address_requests set expires_at = clock() where refund_id = $1', [
      scene.id,
    ])
    return await scene.open()
  },
  canceled: async (scene) => {
    await cancelRefund(scene.shop.ctx, scene.shop.store.id, member, scene.id, scene.shop.ctx.now())
    return await scene.open()
  },
  unknown: async (scene) => await scene.open(`${scene.url.slice(0, -3)}AAA`),
  elsewhere: async (scene) => await scene.open(`${scene.shop.origin}/pay/refund/${scene.id}`),
} satisfies Record<string, (scene: Scene) => Promise<Page>>

export type AddressRequestStateName = keyof typeof addressRequestStates

type Scene = {
  readonly shop: AddressRequestShop
  readonly id: string
  readonly url: string
  /** Opens the link in a browser of its own. */
  open(url?: string): Promise<Page>
  name(page: Page, text: string): Promise<Page>
  confirm(): Promise<void>
}

/** Opens a page in a state, without script, in its own browser context. Close the page's context afterwards. */
export async function openAddressRequestState(
  browser: Browser,
  shop: AddressRequestShop,
  name: AddressRequestStateName,
  options: { readonly lang: string; readonly context?: BrowserContextOptions },
): Promise<Page> {
  const paymentId = await receiveByHand(shop, {
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payTo: wallets[0],
    amount: 48_000_000n,
  })
  const { id } = await refund(shop, shop.store.id, paymentId, {
    reason: 'Two of the four chairs were sold out.',
  })
  const { url } = await createAddressRequest(shop.ctx, shop.store.id, member, id)
  return await addressRequestStates[name]({
    shop,
    id,
    url,
    async open(at = url) {
      const context = await browser.newContext({ locale: 'en-US', ...options.context })
      context.setDefaultTimeout(patienceMs)
      const page = await context.newPage()
      await page.goto(`${at}?lang=${options.lang}`)
      return page
    },
    async name(page, text) {
      await page.locator('#address').fill(text)
      await page.locator('form.address-request button').click()
      await page.locator('#mistake, main:not([data-address-request=open])').first().waitFor()
      return page
    },
    async confirm() {
      const { addressRequest } = await readRefund(shop.ctx, shop.store.id, id)
      await confirmAddress(
        shop.ctx,
        shop.store.id,
        id,
        {
          judged: await judgeNamed(shop.ctx, shop.store.id, id),
          code: addressRequest?.code ?? '',
          actor: member,
        },
        shop.ctx.now(),
      )
    },
  })
}
