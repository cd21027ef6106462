import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Link, PaymentRequired } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { TestApp } from '../../../support/app.ts'
import { completeByHand, encodePayment, paymentFor } from '../../../support/by-hand.ts'
import type { Answer, StoreClient } from '../../../support/store.ts'
import { newLink } from '../../support/new-link.ts'

export async function makeLink(shop: Pick<StoreClient, 'call'>, body: object = newLink()): Promise<Link> {
  const answer = await shop.call('POST', '/api/v1/links', body)
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<Link>()
}

const browserAccepts = 'text/html,application/xhtml+xml,*/*;q=0.8'
const site = { 'sec-fetch-site': 'same-origin' }

/** A browser, as far as the page of a link needs one. */
export function openBuyer(app: FastifyInstance, remoteAddress = '192.0.2.1') {
  const pathOf = ({ url }: Pick<Link, 'url'>) => new URL(url).pathname
  const visit = async (link: Pick<Link, 'url'>): Promise<Answer> =>
    await app.inject({ url: pathOf(link), headers: { accept: browserAccepts }, remoteAddress })
  const quote = async (link: Pick<Link, 'url'>): Promise<string> => {
    const { body } = await visit(link)
    const [, text] = /name="quote" value="([^"]+)"/.exec(body) ?? assert.fail(body)
    return text ?? ''
  }
  const open = async (
    link: Pick<Link, 'url'>,
    text: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> =>
    await app.inject({
      method: 'POST',
      url: `${pathOf(link)}/open`,
      headers: { accept: browserAccepts, 'content-type': 'application/x-www-form-urlencoded', ...site },
      payload: String(new URLSearchParams({ quote: text, ...more })),
      remoteAddress,
    })
  return {
    visit,
    quote,
    open,
    /** Opens the link, goes on, and returns the checkout's id. */
    goOn: async (link: Pick<Link, 'url'>, more: Readonly<Record<string, string>> = {}): Promise<string> =>
      checkoutIn(await open(link, await quote(link), more)),
  }
}

/** Completes a new checkout of the link. Returns the header of the payment that did it. */
export async function payLinkByHand(farthing: TestApp, link: Pick<Link, 'url'>): Promise<string> {
  const asked = await farthing.request({ url: new URL(link.url).pathname })
  const payment = paymentFor(asked.json<PaymentRequired>())
  const nonce = `0x${randomBytes(32).toString('hex')}`
  await completeByHand(farthing, await openBuyer(farthing.app).goOn(link), nonce)
  const { payload } = payment
  return encodePayment({
    ...payment,
    payload: { ...payload, authorization: { ...payload.authorization, nonce } },
  })
}

export function checkoutIn(answer: Answer): string {
  assert.equal(answer.statusCode, 303, answer.body)
  const [, id] = /\/(ch_\w+)$/.exec(String(answer.headers.location)) ?? assert.fail('it leads elsewhere')
  return id ?? ''
}
