import assert from 'node:assert/strict'
import type { Refund } from '@farthing/sdk'
import { createKeyPairSignerFromPrivateKeyBytes, type KeyPairSigner, signBytes } from '@solana/kit'
import { decodeTransaction, encodeTransaction } from '../../../../src/chains/svm/message.ts'
import { findTokenAccount } from '../../../../src/chains/svm/transfer.ts'
import type { Context } from '../../../../src/context.ts'
import { forStore } from '../../../../src/http/console/visitor.ts'
import type { StoreId } from '../../../../src/ids.ts'
import type { Rails } from '../../../../src/payments/rail.ts'
import { openRails } from '../../../../src/payments/rails.ts'
import { Problem } from '../../../../src/problems.ts'
import { cancelRefund } from '../../../../src/refunds/cancel.ts'
import { type AskedRefund, createRefund } from '../../../../src/refunds/create.ts'
import { readRefund } from '../../../../src/refunds/read.ts'
import { nameTransaction } from '../../../../src/refunds/self-sent.ts'
import { prepareRefund, signRefund } from '../../../../src/refunds/sign.ts'
import { openAs } from '../../../support/database.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const actor = { type: 'key', id: 'a', name: null } as const

export type Refunding = Awaited<ReturnType<typeof openRefunding>>

/** A store on Solana that holds the key of its wallet, and can refund what it was paid. */
export async function openRefunding(finalizedAfter = 8) {
  const wallet = await createKeyPairSignerFromPrivateKeyBytes(crypto.getRandomValues(new Uint8Array(32)))
  const shop = await openShop({
    network: 'SOLANA_LOCAL',
    payTo: wallet.address,
    finalizedAfter,
  })
  const { chain, store } = shop
  await shop.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  const serve = { ...shop.ctx, db: openAs('serve', shop.databaseUrl) }
  const read = (id: string): Promise<Refund> => readRefund(serve, store.id, id)
  const console = { ...shop.ctx, db: openAs('console', shop.databaseUrl) }
  return {
    ...shop,
    wallet,
    read,
    ...openActs(serve, openRails(serve), store.id, wallet),
    /** The same as the console does it, which sees the store that it names. */
    inConsole: openActs(forStore(console, store.id), openRails(console), store.id, wallet),
    /** A buyer pays one dollar, and it becomes final; on a chain where that takes long, blocks are made for it. */
    async pay(isSlow = false) {
      const payer = await chain.payer()
      const id = await shop.create()
      const paid = await shop.pay(id, await shop.sign(id, payer))
      assert.equal(paid.statusCode, 200, paid.body)
      if (isSlow) chain.mine(finalizedAfter)
      await until('the payment is final', async () => (await shop.read(id)).payment.finality === 'finalized')
      const [row] = await shop.ctx.db.query<{ payment_id: string }>(
        'select payment_id from credits where checkout_id = $1 and orphaned_at is null',
        [id],
      )
      return { id, payer, paymentId: row?.payment_id ?? assert.fail() }
    },
    untilStatus: (id: string, status: Refund['status']): Promise<void> =>
      until(`the refund is ${status}`, async () => (await read(id)).status === status),
    balanceOf: async (owner: string): Promise<bigint> => (await chain.balance(owner, chain.mint)) ?? 0n,
    /** Freezes (2) or closes (0) the account in which a wallet holds the token. */
    async damage(owner: string, how: 'frozen' | 'closed') {
      const found = chain.account(await findTokenAccount(owner, chain.mint))
      assert(found.exists)
      const data = new Uint8Array(found.data)
      if (how === 'frozen') data[108] = 2
      else data.fill(0)
      chain.plant({ ...found, data })
      return () => chain.plant(found)
    },
  }
}

/** What a store and its wallet do about refunds. */
function openActs(ctx: Context, rails: Rails, storeId: StoreId, wallet: KeyPairSigner) {
  const prepare = async (id: string): Promise<string> => {
    const prepared = await prepareRefund(ctx, rails, storeId, id)
    assert('transaction' in prepared)
    return prepared.transaction
  }
  return {
    ask: (paymentId: string, asked: Partial<AskedRefund> = {}, mayChooseRecipient = false): Promise<Refund> =>
      createRefund(
        ctx,
        storeId,
        { actor, mayChooseRecipient },
        {
          paymentId,
          amount: null,
          recipient: null,
          reason: null,
          way: 'signed',
          idempotency: null,
          ...asked,
        },
        new Date(),
      ),
    prepare,
    present: (id: string, transaction: string): Promise<Refund> =>
      signRefund(ctx, rails, storeId, id, { transaction }),
    name: (id: string, transaction: string): Promise<Refund> =>
      nameTransaction(ctx, rails, storeId, id, { transaction, actor }),
    /** Prepares the refund, and signs it with the store's wallet. */
    signed: async (id: string): Promise<string> => await signWith(wallet, await prepare(id)),
    cancel: (id: string): Promise<Refund> => cancelRefund(ctx, storeId, actor, id, new Date()),
  }
}

/** The transaction with this wallet's signature in the second place. */
export async function signWith(wallet: KeyPairSigner, encoded: string): Promise<string> {
  const { message } = decodeTransaction(Buffer.from(encoded, 'base64')) ?? assert.fail()
  const own = new Uint8Array(await signBytes(wallet.keyPair.privateKey, message))
  return Buffer.from(encodeTransaction({ message, signatures: [new Uint8Array(64), own] })).toString('base64')
}

/** The problem that an action is refused with. */
export async function refusal(asked: Promise<unknown>): Promise<Problem> {
  const error = await asked.then(
    () => assert.fail('expected a problem'),
    (error: unknown) => error,
  )
  assert(error instanceof Problem, String(error))
  return error
}
