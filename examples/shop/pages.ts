import { readFileSync } from 'node:fs'

export type Product = {
  readonly id: string
  readonly name: string
  readonly about: string
  readonly cents: number
}
export type Order = {
  readonly id: string
  readonly items: readonly Product[]
  readonly checkoutId: string
  readonly checkoutUrl: string
  status: 'unpaid' | 'paid' | 'refunding' | 'refunded'
  /** Who paid and how much, in the token's smallest units. A refund returns this amount to this payer. */
  paid: { readonly amount: string; readonly payer: string } | null
  /** The number of the refund: after a failed one, the owner can try another. */
  attempt: number
}

/** The shop's pages. They contain no text from buyers; a shop that shows such text has to escape it. */
const style = readFileSync(new URL('style.css', import.meta.url), 'utf8')

const pictures: Readonly<Record<string, string>> = {
  mug: '<path d="M30 34h46v34a14 14 0 0 1-14 14H44a14 14 0 0 1-14-14z" fill="#f7f3ea" stroke="#22304a" stroke-width="3"/><path d="M76 42h7a11 11 0 0 1 0 22h-7" fill="none" stroke="#22304a" stroke-width="5"/><path d="M29 33h48" stroke="#22304a" stroke-width="6" stroke-linecap="round"/>',
  notebook:
    '<rect x="34" y="22" width="50" height="66" rx="4" fill="#8c3b2e"/><rect x="34" y="22" width="11" height="66" rx="3" fill="#6d2c22"/><rect x="54" y="36" width="22" height="14" rx="2" fill="#f7f3ea"/><path d="M77 22v66" stroke="#e2b04a" stroke-width="3"/>',
  tea: '<rect x="34" y="34" width="44" height="54" rx="5" fill="#2f5d50"/><rect x="38" y="22" width="36" height="13" rx="4" fill="#24483e"/><circle cx="56" cy="60" r="14" fill="#f7f3ea"/><path d="M49 64c1-9 7-11 14-11 0 8-5 13-14 11z" fill="#2f5d50"/>',
}

export function cartPage(products: readonly Product[], cart: readonly Product[]): string {
  const cards = products
    .map(
      (product) => `<li><svg viewBox="0 0 112 104" aria-hidden="true">${pictures[product.id]}</svg>
<h2>${product.name}</h2><p>${product.about}</p>
<form action="/">${fields(cart)}<input type="hidden" name="item" value="${product.id}">
<strong>${price(product.cents)}</strong><button aria-label="Add ${product.name}">Add</button></form></li>`,
    )
    .join('')
  return page(
    'Good things for small money',
    `<ul class="goods">${cards}</ul>
<section class="cart" aria-label="Cart"><h2>Your cart</h2>
${
  cart.length === 0
    ? '<p>Nothing in it yet.</p>'
    : `${receipt(cart)}<form method="post" action="/orders">${fields(cart)}<button>Check out</button></form><p><a href="/">Empty it</a></p>`
}</section>`,
  )
}

export function orderPage({ id, items, status, checkoutUrl }: Order): string {
  const reloads = '<meta http-equiv="refresh" content="2">'
  const box = (title: string, text: string, more = '') =>
    `<section class="cart"><h2>${title}</h2><p>${text}</p>${receipt(items)}${more}</section>`
  const seen = `<p><a href="${checkoutUrl}">See it on the payment’s page</a></p>`
  switch (status) {
    case 'unpaid':
      return page(
        'Almost there',
        box(
          'Waiting for your payment',
          'This page reloads every two seconds.',
          `<p><a href="${checkoutUrl}">Back to the payment</a></p>`,
        ),
        reloads,
      )
    case 'paid':
      return page('Thank you', box('Paid', `We are packing ${id}.`))
    case 'refunding':
      return page('Your refund', box('On its way', `We are returning the money for ${id}.`, seen), reloads)
    case 'refunded':
      return page('Your refund', box('Refunded', `The money for ${id} is back in your wallet.`, seen))
  }
}

/** For the shop's owner: every order, and a button for those that can be refunded. */
export function ownerPage(orders: readonly Order[]): string {
  const rows = orders.map(
    ({ id, items, status }) =>
      `<tr><td>${id}<br>${price(total(items))}, ${status}</td><td>${
        status === 'paid'
          ? `<form method="post" action="/owner/${id}"><button aria-label="Refund ${id}">Refund</button></form>`
          : ''
      }</td></tr>`,
  )
  return page(
    'Orders',
    `<section class="cart">${rows.length === 0 ? '<p>None yet.</p>' : `<table>${rows.join('')}</table>`}</section>`,
  )
}

export function messagePage(title: string, text: string): string {
  return page(title, `<section class="cart"><p>${text}</p><p><a href="/">Back to the shop</a></p></section>`)
}

function receipt(items: readonly Product[]): string {
  const lines = [...Map.groupBy(items, ({ id }) => id).values()].map(
    (same) =>
      `<tr><td>${same[0]?.name}${same.length > 1 ? ` × ${same.length}` : ''}</td><td>${price(total(same))}</td></tr>`,
  )
  return `<table>${lines.join('')}<tr><th scope="row">Total</th><th>${price(total(items))}</th></tr></table>`
}

function total(items: readonly Product[]): number {
  return items.reduce((sum, { cents }) => sum + cents, 0)
}

function price(cents: number): string {
  return `€${Math.trunc(cents / 100)}.${String(cents % 100).padStart(2, '0')}`
}

function fields(cart: readonly Product[]): string {
  return cart.map(({ id }) => `<input type="hidden" name="item" value="${id}">`).join('')
}

function page(title: string, main: string, head = ''): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${head}
<title>${title}</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body><header><a href="/">Small Change</a></header><main><h1>${title}</h1>${main}</main></body>
</html>
`
}
