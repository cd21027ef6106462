import assert from 'node:assert/strict'
import type { Payment } from '@farthing/sdk'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { type CheckoutView, readView } from '../../../../src/checkouts/view.ts'
import { tokenAbi } from '../../../support/chain/evm.ts'
import { openShop, payTo, type Shop } from '../../../support/shop.ts'
import { type Answer, untilRead } from '../../../support/watch.ts'

/** Accounts of the chain that have ether: the buyers who send by hand. */
export const buyers = [
  '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
  '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc',
  '0x976EA74026E726554dB657fA54763abd0C3a0aa9',
] as const satisfies Address[]

/** A shop whose blocks are mined only when the test says so, and buyers with money. */
export async function openHandShop(settings: Readonly<Record<string, string>> = {}) {
  const shop = await openShop({ blockTimeSeconds: null, settings })
  await shop.chain.mint(buyers, 10n ** 12n)
  return shop
}

let posts = 0

/** Submits a form of the page, by default from a new address each time, because addresses are rate-limited. */
export async function post(
  shop: Pick<Shop, 'request'>,
  path: string,
  fields: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
  remoteAddress = `10.1.${Math.floor(++posts / 250)}.${posts % 250}`,
): Promise<Answer> {
  return await shop.request({
    remoteAddress,
    method: 'POST',
    url: `/c/${path}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(fields).toString(),
  })
}

/** The form's result: the query of the URL that the browser goes to next. */
export function ledTo(answer: Answer): string {
  assert.equal(answer.statusCode, 303, answer.body)
  const { pathname, search, hash } = new URL(String(answer.headers.location), 'https://pay.farthing.example')
  assert.match(pathname, /^\/c\/ch_/)
  assert.equal(hash, '#send')
  return search
}

/** Reserves an amount for a checkout, as the form does, and returns it in units. */
export async function reserve(shop: Shop, checkoutId: string): Promise<bigint> {
  // Farthing does not rely on a chain that has not moved for a while.
  await shop.chain.mine()
  await untilRead(shop)
  assert.equal(ledTo(await post(shop, `${checkoutId}/transfer`)), '?way=send')
  const [transfer] = (await view(shop, checkoutId)).transfers
  assert(transfer)
  assert.equal(transfer.payTo, payTo)
  return BigInt(transfer.amount)
}

export async function view(shop: Shop, checkoutId: string): Promise<CheckoutView> {
  const found = await readView(shop.ctx, checkoutId)
  assert(found)
  return found
}

/** Puts a transfer into the pool. */
export async function sendUnits(
  shop: Shop,
  units: bigint,
  from: Address = buyers[0],
  to: Address = payTo,
): Promise<Hex> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [to, units] })
  return await shop.chain.send({ to: shop.chain.token, data, from })
}

/** Sends a transfer, mines it, and waits until the follower has read it. */
export async function transfer(
  shop: Shop,
  units: bigint,
  from: Address = buyers[0],
  to: Address = payTo,
): Promise<Hex> {
  const hash = await sendUnits(shop, units, from, to)
  await shop.chain.mine()
  const { status } = await shop.chain.client.getTransactionReceipt({ hash })
  assert.equal(status, 'success')
  await untilRead(shop)
  return hash
}

export async function call(shop: Shop, method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
  return await shop.request({
    method,
    url: `/api/v1/payments${path}`,
    headers: { 'x-api-key': shop.key, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { payload: JSON.stringify(body) }),
  })
}

/** The store's payment with this transaction, if it has one. */
export async function paymentBy(shop: Shop, transaction: Hex): Promise<Payment | undefined> {
  let cursor = ''
  for (;;) {
    const answer = await call(shop, 'GET', `?limit=100${cursor}`)
    assert.equal(answer.statusCode, 200, answer.body)
    const { data, nextCursor } = answer.json() as { data: Payment[]; nextCursor: string | null }
    const found = data.find((payment) => payment.transaction === transaction)
    if (found || nextCursor === null) return found
    cursor = `&cursor=${nextCursor}`
  }
}
