import assert from 'node:assert/strict'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { examine } from '../../../../src/commands/doctor.ts'
import { openDatabase } from '../../../../src/database/db.ts'
import { buildConsole } from '../../../../src/http/console/app.ts'
import { inviteAsOperator } from '../../../../src/members/invite.ts'
import { openTestApp, type TestApp } from '../../../support/app.ts'
import { atEnd } from '../../../support/at-end.ts'
import { openAs, urlAs } from '../../../support/database.ts'
import { freePort } from '../../../support/free-port.ts'
import { operator } from '../../../support/operator.ts'
import { openStore, type StoreClient } from '../../../support/store.ts'
import { type Authenticator, openAuthenticator } from './authenticator.ts'

export type TestConsole = { readonly farthing: TestApp; readonly app: FastifyInstance; readonly url: string }

/** The console of a local deployment. With `listens` a browser can open it. */
export async function openConsole({ listens = false, settings = {} } = {}): Promise<TestConsole> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const farthing = await openTestApp({
    BASE_URL: 'http://127.0.0.1:8402',
    CHECKOUT_PAGE_URL: 'http://127.0.0.1:8402/pay',
    CONSOLE_URL: url,
    CONSOLE_PORT: `${port}`,
    ...settings,
  })
  const db = openDatabase({
    url: urlAs('console', farthing.databaseUrl),
    connections: 8,
    name: 'test-console',
  })
  const serve = { ...farthing.ctx, db: openAs('serve', farthing.databaseUrl) }
  const deployment = { ctx: serve, examine: () => examine(serve, async () => []) }
  const app = buildConsole({ ...farthing.ctx, db }, { isDraining: false }, deployment)
  atEnd(async () => {
    await app.close()
    await db.close()
  })
  if (listens) await app.listen({ host: '127.0.0.1', port })
  else await app.ready()
  return { farthing, app, url }
}

/** A store, and the token of the link with which its first owner enrols. */
export async function openInvitedStore(
  { farthing }: TestConsole,
  options: Parameters<typeof openStore>[1] = { evmWallet: null },
): Promise<{
  readonly store: StoreClient
  readonly token: string
  readonly link: string
}> {
  const store = await openStore(farthing, options)
  const invitee = { name: 'Olga', email: null, role: 'owner' } as const
  const { link } = await inviteAsOperator(farthing.ctx, store.store.id, operator, invitee, new Date())
  return { store, link, token: tokenOf(link) }
}

export function tokenOf(link: string): string {
  return link.split('#')[1] ?? assert.fail('no token in the link')
}

type Fields = Readonly<Record<string, unknown>>
let addresses = 0

/** A browser without a script: its cookie, its form token, and an address of its own, so that no limit is shared. */
export class TestBrowser {
  cookie = ''
  formToken = ''
  readonly app: FastifyInstance
  readonly url: string
  remoteAddress: string
  /** What it calls itself, and other headers that it sends with every request. */
  headers: Readonly<Record<string, string>> = {}
  constructor({ app, url }: TestConsole) {
    addresses++
    this.app = app
    this.url = url
    this.remoteAddress = `10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`
  }

  async get(path: string): Promise<LightMyRequestResponse> {
    const answer = await this.app.inject({
      method: 'GET',
      url: path,
      remoteAddress: this.remoteAddress,
      headers: { cookie: this.cookie, ...this.headers },
    })
    this.keep(answer)
    const [, formToken] = /<meta name="form-token" content="([^"]+)">/.exec(answer.body) ?? []
    if (formToken) this.formToken = formToken
    return answer
  }

  async post(
    path: string,
    fields: Fields = {},
    headers: Readonly<Record<string, string>> = { 'sec-fetch-site': 'same-origin' },
  ): Promise<LightMyRequestResponse> {
    const answer = await this.app.inject({
      method: 'POST',
      url: path,
      remoteAddress: this.remoteAddress,
      payload: JSON.stringify({ formToken: this.formToken, ...fields }),
      headers: { cookie: this.cookie, 'content-type': 'application/json', ...this.headers, ...headers },
    })
    this.keep(answer)
    return answer
  }

  /** A post that must succeed. */
  async done(path: string, fields: Fields = {}): Promise<LightMyRequestResponse> {
    const answer = await this.post(path, fields)
    assert(answer.statusCode < 400, `${path}: ${answer.statusCode} ${answer.body}`)
    return answer
  }

  /** A touch that is good for one action. */
  async confirm(authenticator: Authenticator, action: string, values: Fields): Promise<unknown> {
    const { options } = (await this.done('/confirm', { action, values })).json()
    return authenticator.touch(options)
  }

  private keep(answer: LightMyRequestResponse): void {
    const set = [answer.headers['set-cookie'] ?? []].flat().find((each) => each.startsWith('farthing='))
    if (set) this.cookie = set.split(';')[0] ?? ''
  }
}

export type Enrolled = { readonly browser: TestBrowser; readonly authenticator: Authenticator }

/** Somebody who has used an invitation and is signed in. */
export async function enrolWith(
  console: TestConsole,
  token: string,
  authenticator: Authenticator = openAuthenticator(console.url),
): Promise<Enrolled> {
  const browser = new TestBrowser(console)
  await browser.get('/enrol')
  const { options } = (await browser.done('/enrol/options', { invitation: token })).json()
  await browser.done('/enrol', { invitation: token, answer: authenticator.create(options) })
  await browser.get('/account')
  return { browser, authenticator }
}

export async function signInWith(
  console: TestConsole,
  authenticator: Authenticator,
  browser = new TestBrowser(console),
): Promise<TestBrowser> {
  await browser.get('/sign-in')
  const { options } = (await browser.done('/sign-in/options')).json()
  await browser.done('/sign-in', { answer: authenticator.touch(options) })
  await browser.get('/account')
  return browser
}

/** An owner makes a link for somebody, by the console. */
export async function inviteBy(
  { browser, authenticator }: Enrolled,
  storeId: string,
  invitee: { readonly name: string; readonly role: string; readonly email?: string },
): Promise<string> {
  const values = { email: '', ...invitee }
  const touch = await browser.confirm(authenticator, 'member.invite', { storeId, ...values })
  const answer = await browser.done(`/stores/${storeId}/members`, { ...values, touch })
  return /#([A-Za-z0-9_-]{43})/.exec(answer.body)?.[1] ?? assert.fail(answer.body)
}
