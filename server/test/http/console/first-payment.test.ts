/**
 * An owner without a programmer, from the page where strangers sign up to the first live payment: with a browser, a
 * passkey and a wallet, and without a key, a command or a program. What an operator does first is done here by commands.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKeyPairSigner } from '@solana/kit'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { settlerCommand, storeCommand } from '../../../src/commands/operator.ts'
import { fundedKey, openEvm } from '../../support/chain/evm.ts'
import { newPayer, type Payer } from '../../support/chain/evm-payment.ts'
import { deploySafe, deployWallet, foreseeSafe, type SmartWallet } from '../../support/chain/smart-wallets.ts'
import { startWork, untilReady } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { operator } from '../../support/operator.ts'
import { isTurn } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { findFaults } from '../page/support/axe.ts'
import { giveStandardWallets, giveWallets, openBrowser, openPage } from '../page/support/browser.ts'
import { openConsole } from './support/console.ts'
import { type Device, openDevice } from './support/device.ts'
import { fillByKeyboard, pressByKeyboard, reach } from './support/keyboard.ts'

const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const chromium = await openBrowser()
const service = await openService()
const faults: string[] = []

test('on a desk: the address comes from the wallet in the browser, which proves it by one signature', async () => {
  const holder = newPayer()
  const { device, base } = await signUp(
    'Corner Books',
    async (page) => {
      await page.getByRole('button', { name: 'Take it from Fox Wallet' }).click()
      await page.locator(`input[name=walletAddress]:focus`).waitFor()
      assert.equal(await page.getByLabel('Address of the wallet').inputValue(), holder.address)
      await check('sign-up', page)
    },
    { holder },
  )
  const { page, complaints } = device
  // What comes next is named, and nothing warns of the owner's own wallet.
  assert.equal(await page.getByText('Look at the wallets').count(), 0)
  assert.match(await page.locator('main').innerText(), /A proof that it is yours\s+Next/)
  await check('first steps', page)
  await page.getByRole('link', { name: 'Prove the wallet' }).click()
  await check('wallets', page)
  await page.getByRole('link', { name: 'Prove that it is yours' }).click()
  await check('proof', page)
  await page.getByRole('button', { name: 'Sign with Fox Wallet' }).click()
  await isProven(page)
  await page.goto(`${base}/branding`)
  await page.getByLabel('Legal name').fill('Corner Books Ltd & Sons')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('status').getByText('Saved').waitFor()
  await page.goto(`${base}/start`)
  await page.getByRole('link', { name: 'Make a payment' }).click()
  await page.getByLabel('What is it for?').fill('Two cups')
  await page.getByLabel('Amount', { exact: true }).fill('10')
  await page.getByRole('button', { name: 'Make the link' }).click()
  await payAndSee(page, holder.address, (paying) => readReceipt(paying, 'Corner Books Ltd & Sons'))
  await refundPart(page, base, holder.address)
  assert.deepEqual(complaints, [])
})

test('on a phone: the store goes over to a Safe, on a screen that shows its address in groups, and the Safe proves it', async () => {
  const safe = await openSafe()
  const first = newPayer()
  const { device, base } = await signUp(
    'Pocket Shop',
    async (page) => {
      await page.getByLabel('Address of the wallet').fill(first.address)
    },
    { holder: newPayer(), safe, options: phone },
  )
  const { page, complaints } = device
  await page.goto(`${base}/wallets`)
  await page.getByRole('link', { name: 'Use another wallet' }).click()
  await page.getByLabel('Address of the wallet').fill(safe.address.toLowerCase())
  await check('entering', page)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Change the wallet that you are paid to' }).waitFor()
  const groups = await page.locator('.big .fours > span').allInnerTexts()
  assert.equal(groups.join(''), safe.address)
  assert(groups.every((group) => group.length <= 4))
  await check('confirming', page)
  await page.getByRole('button', { name: 'Confirm with your passkey' }).click()
  await page.waitForURL(/wallets\/wal_/)
  await page.getByRole('button', { name: 'Sign with Fox Wallet' }).click()
  await isProven(page)
  await page.goto(`${base}/new`)
  await page.getByLabel('What is it for?').fill('Two cups')
  await page.getByLabel('Amount', { exact: true }).fill('10')
  await page.getByRole('button', { name: 'Make the link' }).click()
  await payAndSee(page, safe.address)
  await refundPart(page, base, safe.address)
  // Before it is no longer paid, the owner reads what that means.
  await page.goto(`${base}/wallets`)
  await page.getByRole('link', { name: 'Stop using it' }).click()
  await page.getByText('the wallet that was in use before').waitFor()
  await check('stopping', page)
  await page.getByRole('button', { name: 'Stop using it' }).click()
  await page.getByRole('button', { name: 'Use again' }).click()
  await page.getByRole('button', { name: 'Confirm with your passkey' }).click()
  await page.waitForURL(/wallets\/wal_/)
  await isProven(page)
  assert.deepEqual(complaints, [])
})

test('with the keyboard alone, from signing up to the link that is paid, a part of it refunded and the month', async () => {
  const holder = newPayer()
  const device = await openOwner({ holder })
  const { page, complaints } = device
  await page.goto(`${service.url}/sign-up`)
  await page.getByRole('button', { name: 'Take it from Fox Wallet' }).waitFor()
  await fillByKeyboard(page, 'input[name=storeName]', 'Keys & Co')
  await fillByKeyboard(page, 'input[name=name]', 'Kay')
  await pressByKeyboard(page, 'button[data-wallet]')
  await page.locator('input[name=walletAddress]:focus').waitFor()
  await pressByKeyboard(page, 'form > div > button')
  await page.waitForURL(/\/start$/)
  const base = page.url().replace(/\/start$/, '')
  await pressByKeyboard(page, 'main a.button', 'Prove the wallet')
  await page.waitForURL(/\/wallets$/)
  await pressByKeyboard(page, 'main a.button', 'Prove that it is yours')
  await page.waitForURL(/wal_/)
  await page.getByRole('button', { name: 'Sign with Fox Wallet' }).waitFor()
  await pressByKeyboard(page, 'button[data-wallet]')
  await isProven(page)
  await page.goto(`${base}/start`)
  await pressByKeyboard(page, 'main a.button', 'Make a payment')
  await page.locator('input[name=title]:focus').waitFor()
  await page.keyboard.type('Two cups')
  await fillByKeyboard(page, 'input[name=amount]', '10')
  await page.keyboard.press('Enter')
  await payAndSee(page, holder.address)
  await refundPart(page, base, holder.address, byKeyboard)
  assert.deepEqual(complaints, [])
})

test('a store with a deposit address at an exchange reads what that costs, waits, and opens when the operator vouches', async () => {
  const { device, base } = await signUp(
    'Deposit Shop',
    async (page) => {
      await page.getByLabel('Address of the wallet').fill(newPayer().address)
    },
    {},
  )
  const { page, complaints } = device
  await page.goto(`${base}/wallets`)
  await page.getByRole('link', { name: 'Prove that it is yours' }).click()
  await page.getByText('It is at an exchange and cannot sign').click()
  await page.getByText('No payment can be refunded from here').waitFor()
  await check('custody', page)
  await page.getByRole('button', { name: 'It cannot sign' }).click()
  await page.getByText('At an exchange', { exact: true }).waitFor()
  await page.goto(`${base}/new`)
  await page.getByText('as soon as the operator of this service has approved it').waitFor()
  await service.approve(base.split('/').at(-1) ?? '')
  await page.reload()
  assert.equal(await page.getByText('Not open yet').count(), 0)
  await page.getByLabel('What is it for?').fill('Two cups')
  await page.getByLabel('Amount', { exact: true }).fill('10')
  await page.getByRole('button', { name: 'Make the link' }).click()
  await page.locator('.copy code.link').waitFor()
  assert.deepEqual(complaints, [])
})

test('a wallet on Solana proves itself by a signed message; one that declines, or has another account, proves nothing', async () => {
  const signer = await generateKeyPairSigner()
  const { device, base } = await signUp(
    'Solar Shop',
    async (page) => {
      await page.getByRole('button', { name: 'Take it from Moon Wallet' }).click()
      await page.locator('input[name=walletAddress]:focus').waitFor()
    },
    {
      give: async (page) =>
        await giveStandardWallets(page.context(), [
          { signer },
          { signer: await generateKeyPairSigner(), name: 'Other Wallet' },
          { signer, name: 'Shy Wallet', refuse: { 'solana:signMessage': 'User rejected the request' } },
        ]),
    },
  )
  const { page, complaints } = device
  await page.goto(`${base}/wallets`)
  await page.getByRole('link', { name: 'Prove that it is yours' }).click()
  for (const [name, says] of [
    ['Other Wallet', 'does not offer that account'],
    ['Shy Wallet', 'You declined in the wallet'],
  ] as const) {
    await page.getByRole('button', { name: `Sign with ${name}` }).click()
    await page.getByText(says).waitFor()
  }
  await page.getByRole('button', { name: 'Sign with Moon Wallet' }).click()
  await isProven(page)
  assert.deepEqual(
    complaints.filter((text) => !/status of 422/.test(text)),
    [],
  )
})

test('every screen on these ways passes the axe checks and fits a small phone', () => {
  assert.deepEqual(faults, [])
})

async function isProven(page: Page): Promise<void> {
  await page.locator('h1 .chip', { hasText: /^Proven$/ }).waitFor()
}

/** The service as an operator starts it: nodes, a settler, nobody signed up. */
async function openService() {
  const chain = await openEvm({ network: 'BASE_MAINNET', blockTimeSeconds: 1 })
  const { caip2, id, witnessesMin } = chain.network
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const nodes = Array.from({ length: witnessesMin }, (_, i) => `node-${i + 1}=${chain.url}`).join(',')
  const { farthing, url } = await openConsole({
    listens: true,
    settings: {
      ...{ SIGN_UP: 'open', SIGN_UPS_PER_BLOCK: '100', NETWORKS: `${id},SOLANA_MAINNET` },
      ...{ [`${id}_RPC_URLS`]: nodes, BASE_URL: origin, CHECKOUT_PAGE_URL: `${origin}/pay` },
      ...{ ECB_RATES_URL: '', EXCHANGE_RATES_URL: '' },
    },
  })
  const { ctx } = farthing
  await farthing.app.listen({ host: '127.0.0.1', port })
  const settler = openSigner(fundedKey(1))
  await settlerCommand(ctx, ['add', id, settler.address], {}, async () => [])
  startWork(farthing, [settler])
  await untilReady(farthing, caip2)
  const approve = (storeId: string) => storeCommand(ctx, operator, ['approve', storeId], {})
  return { url, chain, approve, payPages: { url: `${origin}/pay`, chain } }
}

type Owner = {
  /** The wallet in the owner's browser signs with this key. */
  readonly holder?: Payer
  /** It is this contract wallet. */
  readonly safe?: SmartWallet
  readonly give?: (page: Page) => Promise<void>
  readonly options?: BrowserContextOptions
}

async function openOwner({ holder, safe, give, options }: Owner): Promise<Device> {
  const device = await openDevice(chromium, 'en-US', options)
  const contract = safe && { account: safe.address, signText: safe.signText, signTyped: safe.signTyped }
  if (holder)
    await giveWallets(device.page.context(), service.chain.url, [
      { key: holder.key, chainId: 1, ...contract },
    ])
  await give?.(device.page)
  return device
}

/** Fills the form, makes the passkey, and is on the first steps of the live store. */
async function signUp(store: string, nameWallet: (page: Page) => Promise<void>, owner: Owner) {
  const device = await openOwner(owner)
  const { page } = device
  await page.goto(`${service.url}/sign-up`)
  await page.getByLabel('Name of the store').fill(store)
  await page.getByLabel('Your name').fill('Ada')
  await nameWallet(page)
  await page.getByRole('button', { name: 'Create a passkey and open the store' }).click()
  await page.waitForURL(/\/stores\/st_\w+\/start$/)
  return { device, base: page.url().replace(/\/start$/, '') }
}

async function openSafe(): Promise<SmartWallet> {
  const { chain } = service
  await deploySafe(chain)
  const safe = await foreseeSafe(chain, [newPayer(), newPayer(), newPayer()], 2)
  await deployWallet(chain, safe)
  return safe
}

/** A buyer pays the link on the screen, which turns to paid by itself, and the money is in the owner's wallet. */
async function payAndSee(
  page: Page,
  payTo: string,
  look: (paying: Page) => Promise<void> = async () => {},
): Promise<void> {
  await page.waitForURL(/\/links\/lnk_/)
  const link = (await page.locator('.copy code.link').textContent()) ?? ''
  const { chain, payPages } = service
  const buyer = newPayer()
  await chain.mint(buyer.address, 10_000_000n)
  const { context, open, complaints } = await openPage(chromium, payPages, { wallets: [{ key: buyer.key }] })
  const paying = await open(link)
  await paying.getByRole('button', { name: 'Continue' }).click()
  await paying.getByRole('button', { name: 'Pay with Fox Wallet' }).click()
  await paying.getByRole('heading', { name: 'Payment received', exact: true }).waitFor()
  await look(paying)
  await context.close()
  assert.deepEqual(complaints, [])
  await page.locator('.state', { hasText: 'Paid' }).waitFor()
  assert.equal(await chain.balance(payTo as `0x${string}`), 10_000_000n)
}

/** The buyer opens the receipt from the paid page: it names the seller as the owner does in Branding. */
async function readReceipt(paying: Page, seller: string): Promise<void> {
  await paying.getByRole('link', { name: 'Save', exact: true }).click()
  const number = paying.getByText('Receipt number')
  await until('the receipt has its number', async () => {
    if ((await number.count()) === 0) await paying.reload()
    return (await number.count()) > 0
  })
  await paying.locator('.seller').getByText(seller, { exact: true }).waitFor()
}

/** How the owner presses what has this text, and replaces what a field has. */
type Hands = {
  readonly press: (page: Page, selector: string, text: string) => Promise<void>
  readonly fill: (page: Page, selector: string, text: string) => Promise<void>
}

const byPointer: Hands = {
  press: (page, selector, text) => page.locator(selector, { hasText: text }).first().click(),
  fill: (page, selector, text) => page.locator(selector).fill(text),
}
const byKeyboard: Hands = {
  press: pressByKeyboard,
  async fill(page, selector, text) {
    await reach(page, selector)
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type(text)
  },
}

/** The owner finds the payment on Home, gives some of it back by one signature, and sees the month with both. */
async function refundPart(page: Page, base: string, payTo: string, hands = byPointer): Promise<void> {
  const { chain } = service
  await chain.mine(10)
  await page.goto(base)
  await hands.press(page, '.latest a', '')
  await page.waitForURL(/\/checkouts\//)
  const refund = page.getByRole('link', { name: 'Refund up to 10.00 USDC' })
  await until('the payment can be refunded', async () => {
    await page.reload()
    return (await refund.count()) > 0
  })
  await hands.press(page, 'main a', 'Refund up to 10.00 USDC')
  await page.waitForURL(/\/refund$/)
  await hands.fill(page, 'input[name=amount]', '4')
  await hands.press(page, 'main button', 'Continue')
  await page.waitForURL(/\/refunds\/rf_/)
  await page.getByRole('button', { name: 'Sign with Fox Wallet' }).waitFor()
  await hands.press(page, 'button[data-wallet]', 'Fox Wallet')
  await page.getByText('The buyer has the money.').waitFor()
  assert.equal(await chain.balance(payTo as `0x${string}`), 6_000_000n)
  await page.goto(base)
  await page.getByText('Taken this month').waitFor()
  await page.locator('.price', { hasText: '$10.00' }).waitFor()
  await page.locator('.latest .chip', { hasText: 'Partly refunded' }).waitFor()
}

/** Also of screens that are the answer to a form, which no list of routes has. */
async function check(screen: string, page: Page): Promise<void> {
  if (!isTurn(0, 2)) return
  const size = page.viewportSize()
  faults.push(...(await findFaults(page)).map((fault) => `${screen}: ${fault}`))
  await page.emulateMedia({ colorScheme: 'light' })
  if (size) await page.setViewportSize(size)
}
