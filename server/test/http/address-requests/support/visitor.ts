import assert from 'node:assert/strict'
import type { LightMyRequestResponse } from 'fastify'
import type { TestApp } from '../../../support/app.ts'

/** A browser as the application sees it: it keeps cookies, follows redirects and submits the form that it was shown. */
export function openVisitor(test: TestApp, address = '192.0.2.1') {
  const cookies = new Map<string, string>()
  let last: { readonly path: string; readonly body: string } | null = null

  async function request(
    method: 'GET' | 'POST',
    url: string,
    payload?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<LightMyRequestResponse> {
    const answer = await test.request({
      method,
      url,
      remoteAddress: address,
      headers: {
        accept: 'text/html',
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(payload !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
        'sec-fetch-site': method === 'POST' ? 'same-origin' : 'none',
        ...headers,
      },
      ...(payload !== undefined && { payload }),
    })
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/Max-Age=0/.test(line)) cookies.delete(name)
      else cookies.set(name, value)
    }
    if (answer.statusCode !== 303) last = { path: url, body: answer.body }
    return answer
  }

  async function follow(answer: LightMyRequestResponse): Promise<LightMyRequestResponse> {
    return answer.statusCode === 303 ? await request('GET', String(answer.headers.location)) : answer
  }

  return {
    cookies,
    request,
    follow,
    /** Opens a URL as a person who clicks on it. */
    open: async (url: string) => await follow(await request('GET', new URL(url, 'https://x').pathname)),
    /** The form on the page that is shown, with this address. */
    fill: (text: string) => {
      const [, action = ''] =
        /<form class="address-request" method="post" action="([^"]+)"/.exec(last?.body ?? '') ?? []
      const [, formToken = ''] = /name="formToken" value="([^"]+)"/.exec(last?.body ?? '') ?? []
      assert(action !== '' && formToken !== '', 'the page has no form')
      return { action, payload: new URLSearchParams({ address: text, formToken }).toString() }
    },
    /** Submits it, and follows to the page that answers. */
    async name(text: string) {
      const { action, payload } = this.fill(text)
      return await follow(await request('POST', action, payload))
    },
  }
}

/** Which state a page shows; null if it shows no addressRequest. */
export function stateIn({ body }: LightMyRequestResponse): string | null {
  return /<main data-address-request="(\w+)"/.exec(body)?.[1] ?? null
}

export function codeIn({ body }: LightMyRequestResponse): string | null {
  return /<strong[^>]*>([A-Z0-9]{4}-[A-Z0-9]{4})</.exec(body)?.[1] ?? null
}
