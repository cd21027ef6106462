import assert from 'node:assert/strict'
import type { Page, Wallet } from '@farthing/sdk'
import type { LightMyRequestResponse } from 'fastify'
import { listChanges, type WalletChange } from '../../../../src/stores/change.ts'
import { order, type StoreClient, wallets } from '../../../support/store.ts'
import { openAuthenticator } from './authenticator.ts'
import { type Enrolled, enrolWith, openInvitedStore, type TestBrowser, type TestConsole } from './console.ts'

export const [a, b, c] = wallets

/** A store whose first wallet is in use, and the owner who guards it. */
export type Guarded = {
  readonly store: StoreClient
  readonly owner: Enrolled
  /** What waits and what was made within a day, newest first. */
  changes(): Promise<WalletChange[]>
  /** The newest change that waits, or that was made. */
  newest(): Promise<WalletChange>
  confirm(change: WalletChange, by?: Enrolled): Promise<LightMyRequestResponse>
  refuse(change: WalletChange, by?: Enrolled): Promise<LightMyRequestResponse>
  undo(change: WalletChange, cancelsOpen: boolean, by?: Enrolled): Promise<LightMyRequestResponse>
  set(walletChanges: string, by?: Enrolled): Promise<LightMyRequestResponse>
  /** What a new checkout is paid to; null if it is refused for want of a wallet. */
  paidTo(): Promise<string | null>
  list(): Promise<Wallet[]>
}

export async function openGuardedStore(
  console: TestConsole,
  options: Parameters<typeof openInvitedStore>[1] = { evmWallet: a },
): Promise<Guarded> {
  const { db } = console.farthing.ctx
  const { store, token } = await openInvitedStore(console, options)
  // Without a counter, so that two touches at once are both good.
  const owner = await enrolWith(console, token, openAuthenticator(console.url, false))
  const {
    store: { id: storeId },
  } = store
  const changes = () => listChanges(db, storeId)
  const confirmed = async (
    { browser, authenticator }: Enrolled,
    path: string,
    action: string,
    values: Readonly<Record<string, string>>,
  ) => {
    const touch = await browser.confirm(authenticator, action, { storeId, ...values })
    return await browser.post(`/stores/${storeId}/wallets/${path}`, { ...values, touch })
  }
  return {
    store,
    owner,
    changes,
    newest: async () => (await changes())[0] ?? assert.fail('no change'),
    confirm: ({ id, kind, wallet }, by = owner) =>
      confirmed(by, 'confirm', 'wallet.confirm', { changeId: id, kind, address: wallet.address }),
    refuse: ({ id }, by = owner) => by.browser.post(`/stores/${storeId}/wallets/refuse`, { changeId: id }),
    undo: ({ id, previous }, cancelsOpen, by = owner) =>
      confirmed(by, 'undo', 'wallet.undo', {
        ...{ changeId: id, address: previous?.address ?? '' },
        ...(cancelsOpen && { cancelsOpen: 'yes' }),
      }),
    set: (walletChanges, by = owner) => confirmed(by, 'setting', 'wallet.setting', { walletChanges }),
    async paidTo() {
      const answer = await store.call('POST', '/api/v1/checkouts', order)
      if (answer.statusCode === 409) {
        assert.equal(answer.json().code, 'wallet_required')
        return null
      }
      return await readPayTo(console, answer.json().id)
    },
    async list() {
      const answer = await store.call('GET', `/api/v1/stores/${storeId}/wallets`)
      return answer.json<Page<Wallet>>().data
    },
  }
}

export async function readPayTo(console: TestConsole, checkoutId: string): Promise<string> {
  const [row] = await console.farthing.ctx.db.query<{ payTo: string }>(
    `select options -> 0 ->> 'payTo' as "payTo" from checkouts where id = $1`,
    [checkoutId],
  )
  return row?.payTo ?? assert.fail(`no checkout ${checkoutId}`)
}

/** Lets time pass for everything that happened to a store's wallets. */
export async function passTime(console: TestConsole, storeId: string, interval: string): Promise<void> {
  await console.farthing.ctx.db.query(
    `update wallet_changes set asked_at = asked_at - $2::interval, expires_at = expires_at - $2::interval,
       made_at = made_at - $2::interval, undone_at = undone_at - $2::interval where store_id = $1`,
    [storeId, interval],
  )
}

export async function isStatus(answer: Promise<LightMyRequestResponse>, status: number): Promise<void> {
  const { statusCode, body } = await answer
  assert.equal(statusCode, status, body)
}

export async function read(browser: TestBrowser, path: string): Promise<string> {
  const answer = await browser.get(path)
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.body
}

/** What a page says: addresses are shown in groups. */
export function withoutTags(page: string): string {
  return page.replace(/<[^>]*>/g, '')
}
