/**
 * A small shop that is paid through Farthing. It contains what a shop has to do and nothing else:
 *
 *   1. POST /orders           store the order, create a checkout for it, send the buyer to the checkout's page
 *   2. POST /webhooks         Farthing reports the payment: trust it only if the signature is valid
 *   3. GET  /orders/{id}      the buyer returns; ask Farthing if the webhook has not arrived yet
 *   4. POST /owner/{id}       the owner returns the money: the shop's wallet signs, a webhook reports the outcome
 *
 * Orders live in memory to keep this short. A real shop stores them in its database.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createClient, FarthingError, type StoreCheckout } from '@farthing/sdk'
import { verifyWebhook, WebhookError } from '@farthing/sdk/webhooks'
import { privateKeyToAccount } from 'viem/accounts'
import { isOwner, mayChange } from './owner.ts'
import { cartPage, messagePage, type Order, orderPage, ownerPage, type Product } from './pages.ts'

const { PORT = '3000', FARTHING_URL = 'http://127.0.0.1:8402', FARTHING_API_KEY = '' } = process.env
const { SHOP_URL = `http://127.0.0.1:${PORT}`, OWNER_PASSWORD = '', STORE_PRIVATE_KEY = '' } = process.env
const itemsMax = 20
/** An event is a few kilobytes; a cart is smaller. */
const bodyBytesMax = 65_536

const products: readonly Product[] = [
  { id: 'mug', name: 'Enamel mug', about: 'Holds coffee and small change.', cents: 1_400 },
  { id: 'notebook', name: 'Ledger notebook', about: 'Never rounds down.', cents: 650 },
  { id: 'tea', name: 'Breakfast tea', about: 'Settles in four minutes.', cents: 980 },
]
const orders = new Map<string, Order>()
const farthing = createClient({ apiKey: FARTHING_API_KEY, baseUrl: FARTHING_URL })
const webhookSecret = await registerWebhook()

createServer((request, response) => {
  answer(request, response).catch((error) => {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
    // If Farthing refused the request, its operator can find the reason by this id.
    const reference = error instanceof FarthingError ? ` (${error.requestId})` : ''
    send(response, 502, messagePage('That did not work', `Nothing was charged. Try again soon${reference}.`))
  })
}).listen(Number.parseInt(PORT, 10), '127.0.0.1', () => say(`The shop is open at ${SHOP_URL}`))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', SHOP_URL)
  const order = orders.get(url.pathname.replace('/orders/', ''))
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /':
      return send(response, 200, cartPage(products, readCart(url.searchParams)))
    case 'POST /orders':
      return await takeOrder(readCart(new URLSearchParams((await readBody(request)).toString())), response)
    case 'POST /webhooks':
      return await receiveWebhook(request, response)
    case `GET /orders/${order?.id}`:
      if (order) return send(response, 200, orderPage(await refresh(order)))
  }
  if (url.pathname.startsWith('/owner')) return await answerOwner(request, response, url.pathname)
  send(response, 404, messagePage('Page not found', 'This shop has no such page.'))
}

async function answerOwner(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
  if (!isOwner(request, OWNER_PASSWORD)) {
    response.setHeader('www-authenticate', 'Basic realm="Small Change"')
    return send(response, 401, messagePage('For the owner', 'Sign in as owner, with OWNER_PASSWORD.'))
  }
  if (request.method === 'GET') return send(response, 200, ownerPage([...orders.values()]))
  const order = orders.get(path.replace('/owner/', ''))
  if (!order || !mayChange(request, SHOP_URL)) return redirect(response, '/owner')
  try {
    await refund(order)
    redirect(response, '/owner')
  } catch (error) {
    if (!(error instanceof FarthingError) || error.status !== 409) throw error
    // For example, payments can be returned once they are final, some minutes after they arrived.
    send(response, 409, messagePage('Not possible yet', error.message))
  }
}

/**
 * Returns all of an order's payment, without gas: the wallet signs, Farthing sends. It signs only what this shop
 * recorded when the order was paid. `sign` refuses anything else, so not even a hacked Farthing gets another signature.
 */
async function refund(order: Order): Promise<void> {
  const { id, paid, attempt } = order
  if (order.status !== 'paid' || !paid) return
  const wallet = privateKeyToAccount(STORE_PRIVATE_KEY as `0x${string}`)
  const [payment] = (
    await farthing.payments.list({ checkoutId: order.checkoutId, disposition: 'exact' }).page()
  ).data
  if (!payment) throw new Error(`${id} has no payment.`)
  // However often this is clicked, the order gets one refund. After a failure, the next attempt is another one.
  const idempotencyKey = `refund-${id}-${attempt}`
  const { id: refundId } = await farthing.refunds.create(
    payment.id,
    { amount: paid.amount, reason: `Your return of ${id}` },
    { idempotencyKey },
  )
  order.status = 'refunding'
  try {
    await farthing.refunds.sign(refundId, wallet, { amount: paid.amount, recipient: paid.payer })
    say(`${id} is being refunded (${refundId}).`)
  } catch (error) {
    // Another click asks for the same refund again.
    order.status = 'paid'
    throw error
  }
}

async function takeOrder(items: readonly Product[], response: ServerResponse): Promise<void> {
  if (items.length === 0) return redirect(response, '/')
  const id = `order-${randomBytes(6).toString('hex')}`
  const cents = items.reduce((sum, item) => sum + item.cents, 0)
  const checkout = await farthing.checkouts.create(
    {
      orderId: id,
      priceAmount: `${Math.trunc(cents / 100)}.${String(cents % 100).padStart(2, '0')}`,
      priceCurrency: 'EUR',
      successRedirectUrl: `${SHOP_URL}/orders/${id}`,
    },
    // However often this is sent, the order gets only one checkout.
    { idempotencyKey: id },
  )
  const { id: checkoutId, checkoutUrl } = checkout
  orders.set(id, { id, items, checkoutId, checkoutUrl, status: 'unpaid', paid: null, attempt: 1 })
  redirect(response, checkoutUrl)
}

async function receiveWebhook(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const body = await readBody(request)
    const event = await verifyWebhook({ body, headers: request.headers, secrets: webhookSecret })
    // The same event may arrive twice, so handling it must be idempotent.
    const { type, data } = event
    if (type === 'checkout.completed') markPaid(data.checkout, 'by webhook')
    if ('refund' in data) markRefunded(orders.get(data.refund.orderId ?? ''), data.refund.status)
    response.writeHead(204).end()
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error
    response.writeHead(400).end(error.message)
  }
}

/** Webhooks can be late. A returning buyer proves nothing: anyone can open this URL. */
async function refresh(order: Order): Promise<Order> {
  if (order.status === 'unpaid') {
    const checkout = await farthing.checkouts.get(order.checkoutId)
    if (checkout.status === 'COMPLETED') markPaid(checkout, 'by polling')
  }
  return order
}

function markPaid(checkout: StoreCheckout | null, how: string): void {
  const order = orders.get(checkout?.orderId ?? '')
  if (order?.status !== 'unpaid' || !checkout?.payment) return
  order.status = 'paid'
  order.paid = { amount: checkout.payment.amount, payer: checkout.payment.payer }
  say(`${order.id} is paid (${how}): pack it.`)
}

/** Events may come twice or out of order, so the refund's own status decides, not the event's type. */
function markRefunded(order: Order | undefined, status: string): void {
  if (!order || order.status === 'refunded') return
  if (status === 'COMPLETED') {
    order.status = 'refunded'
    say(`${order.id} is refunded.`)
  }
  if (status === 'FAILED' && order.status === 'refunding') {
    order.status = 'paid'
    order.attempt++
    say(`The refund of ${order.id} failed. Nothing was returned: try again.`)
  }
}

/** Registers this shop's webhook endpoint, unless it exists. A secret cannot be read later, so each start rolls it. */
async function registerWebhook(): Promise<string> {
  const url = `${SHOP_URL}/webhooks`
  for await (const endpoint of farthing.webhookEndpoints.list()) {
    if (endpoint.url === url)
      return (await farthing.webhookEndpoints.rollSecret(endpoint.id, { overlapSeconds: 0 })).secret
  }
  const types = ['checkout.completed', 'refund.completed', 'refund.failed'] as const
  return (await farthing.webhookEndpoints.create({ url, types: [...types] })).secret
}

/** The cart is in the URL: `?item=mug&item=tea`. Prices come from the shop, never from the buyer. */
function readCart(fields: URLSearchParams): Product[] {
  return fields
    .getAll('item')
    .slice(0, itemsMax)
    .flatMap((id) => products.find((product) => product.id === id) ?? [])
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) throw new Error('The request is too large.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { location }).end()
}

function send(response: ServerResponse, status: number, page: string): void {
  response
    .writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
    .end(page)
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
