import assert from 'node:assert/strict'
import type { Actor, Refund } from '@farthing/sdk'
import type { Address, Hex, TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { numberEvents } from '../../../src/checkouts/number-events.ts'
import type { Context } from '../../../src/context.ts'
import { openDatabase } from '../../../src/database/db.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { cancelRefund } from '../../../src/refunds/cancel.ts'
import { type AskedRefund, createRefund } from '../../../src/refunds/create.ts'
import { readRefund } from '../../../src/refunds/read.ts'
import { type PreparedRefund, prepareRefund, signRefund } from '../../../src/refunds/sign.ts'
import { watchRefunds } from '../../../src/refunds/watch.ts'
import { registerWallet } from '../../../src/stores/wallets.ts'
import { openDriven, type Prepared } from '../../payments/adversity/driven.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import type { Payer } from '../../support/chain/evm-payment.ts'
import { urlAs } from '../../support/database.ts'
import { operator } from '../../support/operator.ts'

/** The key of the wallet that `openShop` registers for its store. */
export const walletKey = fundedKey(1)
const member: Actor = { type: 'member', id: 'mem_1', name: 'Ada' }

/** A payment that is final. */
export type Paid = { readonly checkoutId: string; readonly paymentId: string; readonly payer: Payer }

/**
 * A shop that moves only when the test says so, with payments that can be refunded. What `serve` does runs with the
 * rights of `serve`, and what `work` does with those of `work`.
 */
export async function openRefunding(options: Parameters<typeof openDriven>[0] = {}) {
  const shop = await openDriven(options)
  const as = (role: 'serve' | 'work'): Context => {
    const db = openDatabase({ url: urlAs(role, shop.databaseUrl), connections: 8, name: `test-${role}` })
    atEnd(() => db.close())
    return { ...shop.ctx, db }
  }
  const [serve, work] = [as('serve'), as('work')]
  const rails = openRails(serve)
  const storeId = shop.store.id
  const { db } = shop.ctx
  await db.query('update wallets set proven_at = clock() where store_id = $1', [storeId])

  /** Lets refunds see what has become of them. */
  const watch = async () => {
    const turn = { after: '' }
    while (await watchRefunds(work, turn));
    await numberEvents(shop.ctx)
  }
  const create = (paymentId: string, change: Partial<AskedRefund> = {}): Promise<Refund> =>
    createRefund(
      serve,
      storeId,
      { actor: member, mayChooseRecipient: true },
      { paymentId, amount: null, recipient: null, reason: null, way: 'signed', idempotency: null, ...change },
      shop.ctx.now(),
    )
  const prepare = (id: string): Promise<PreparedRefund> => prepareRefund(serve, rails, storeId, id)
  const present = (id: string, signature: Hex): Promise<Refund> =>
    signRefund(serve, rails, storeId, id, { signature })

  return {
    ...shop,
    serve,
    work,
    /** What a store and its wallet do. */
    refunds: {
      create,
      prepare,
      present,
      watch,
      /** Prepares and signs. */
      sign: async (id: string, key: Hex = walletKey): Promise<Hex> => await signTyped(await prepare(id), key),
      /** The whole way up to a signature that lanes send. */
      async signed(paymentId: string, change: Partial<AskedRefund> = {}): Promise<Refund> {
        const { id } = await create(paymentId, change)
        return await present(id, await signTyped(await prepare(id), walletKey))
      },
      cancel: (id: string): Promise<Refund> => cancelRefund(serve, storeId, member, id, shop.ctx.now()),
      /** As it is now. */
      async read(id: string): Promise<Refund> {
        await watch()
        return await readRefund(serve, storeId, id)
      },
      /** The types of its events. */
      async told(id: string): Promise<string[]> {
        const rows = await db.query<{ type: string }>(
          `select type from events where data -> 'refund' ->> 'id' = $1 order by position`,
          [id],
        )
        return rows.map(({ type }) => type)
      },
      async reserved(paymentId: string): Promise<bigint> {
        const [row] = await db.query<{ reserved: string }>(
          'select reserved from refund_totals where payment_id = $1',
          [paymentId],
        )
        return BigInt(row?.reserved ?? '0')
      },
    },
    /** Payments that have settled and are final. */
    async paid(count: number): Promise<Paid[]> {
      const payments = await shop.prepare(count)
      const answers = await shop.present(payments)
      await shop.send()
      await shop.mine()
      for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
      await shop.mine(9)
      return await Promise.all(payments.map((payment) => toPaid(payment)))
    },
    /** A final payment to the store's current wallet, signed as `openShop` signs. */
    async payment(...signed: [payer: Payer, overrides?: Parameters<typeof shop.sign>[2]]): Promise<string> {
      const checkoutId = await shop.create()
      await shop.idle()
      const answer = shop.pay({ checkoutId, header: await shop.sign(checkoutId, ...signed) })
      for (;;) {
        await shop.send()
        await shop.mine()
        const [row] = await db.query<{ id: string }>(
          'select payment_id as id from credits where checkout_id = $1',
          [checkoutId],
        )
        if (!row) continue
        assert.equal((await answer).statusCode, 200)
        await shop.mine(9)
        return row.id
      }
    },
    /** Has the store paid to this wallet from now on. */
    async payTo(walletAddress: Address): Promise<void> {
      const wallet = { family: 'EVM', walletAddress, custodialType: 'NON_CUSTODIAL' } as const
      await registerWallet(shop.ctx, storeId, operator, wallet, shop.ctx.now())
      await db.query('update wallets set proven_at = clock()')
    },
    /** Sends what waits, and mines it. */
    async land(): Promise<void> {
      await shop.send()
      await shop.mine()
    },
    /** Moves the chain ahead and our clock with it, until a block of then is deep, and buries what is dead. */
    async pass(seconds: number): Promise<void> {
      const ours = BigInt(Math.ceil(shop.ctx.now().getTime() / 1_000))
      const theirs = await shop.chain.time()
      await shop.chain.setNextBlockTimestamp((ours > theirs ? ours : theirs) + BigInt(seconds))
      await shop.mine()
      await shop.bury()
      shop.clock.now = new Date(Number(await shop.chain.time()) * 1_000)
    },
  }

  async function toPaid({ checkoutId, payer }: Prepared): Promise<Paid> {
    const [row] = await db.query<{ id: string }>(
      'select payment_id as id from credits where checkout_id = $1 and finalized_at is not null',
      [checkoutId],
    )
    return { checkoutId, payer, paymentId: row?.id ?? assert.fail('the payment is not final') }
  }
}

export async function signTyped(prepared: PreparedRefund, key: Hex): Promise<Hex> {
  assert('typedData' in prepared)
  return await privateKeyToAccount(key).signTypedData(prepared.typedData as TypedDataDefinition)
}
