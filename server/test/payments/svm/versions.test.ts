/**
 * Plain transfers in transactions of version 1. litesvm does not run these, so a transfer of version 0 runs on the chain,
 * and the node returns it in the form that it has in version 1.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  compileTransaction,
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  getTransactionEncoder,
} from '@solana/kit'
import { decodeAnyTransaction, decodeTransaction } from '../../../src/chains/svm/message.ts'
import { readExact } from '../../../src/chains/svm/transfer.ts'
import { readView } from '../../../src/checkouts/view.ts'
import { svmTransaction, transferWire, usdc } from '../../support/chain/svm-payment.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { openShop, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { post } from '../transfers/support/hand-transfers.ts'

const node = await openFaultyNode('')
const shop = await openShop({ network: 'SOLANA_LOCAL', nodes: [node], settings: { LOG_LEVEL: 'error' } })
const { chain } = shop

/** The same instructions and signatures in version 1. */
function toVersion1(bytes: Uint8Array): Uint8Array {
  const { messageBytes, signatures } = getTransactionDecoder().decode(bytes)
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes)
  assert(message.version === 0)
  const { messageBytes: written } = compileTransaction({
    ...decompileTransactionMessage(message),
    version: 1,
  } as never)
  return new Uint8Array(getTransactionEncoder().encode({ messageBytes: written, signatures } as never))
}

type Found = { transaction: [string, string]; version: unknown } | null

/** The node returns transactions changed by this; it refuses those who don't know the version, as nodes do. */
function returns(change: (bytes: Uint8Array) => Uint8Array, version: number): void {
  node.lie = ({ method, params }, result) => {
    const found = result as Found
    if (method !== 'getTransaction' || !found) return result
    const { maxSupportedTransactionVersion: known = 0 } = params[1] as {
      maxSupportedTransactionVersion?: number
    }
    if (known < version)
      return Object.assign(
        new Error(`Transaction version (${version}) is not supported by the requesting client.`),
        {
          code: -32015,
        },
      )
    const bytes = Buffer.from(change(Buffer.from(found.transaction[0], 'base64')))
    return { ...found, transaction: [bytes.toString('base64'), 'base64'], version }
  }
}

/** Asks for a reference and pays by hand. Returns the checkout. */
async function payByHand(): Promise<string> {
  const payer = await chain.payer()
  await chain.fund(payer.address, { lamports: 1_000_000_000n })
  const id = await shop.create('1.00')
  await post(shop, `${id}/transfer`)
  const [transfer] = (await readView(shop.ctx, id))?.transfers ?? []
  assert(transfer?.reference)
  const wire = await transferWire(chain, payer, svmPayTo, 1_000_000n, [transfer.reference])
  await chain.rpc('sendTransaction', [wire, { encoding: 'base64', skipPreflight: true }])
  return id
}

test('a plain transfer in a transaction of version 1 completes its checkout', async () => {
  returns(toVersion1, 1)
  const id = await payByHand()
  await until('it is paid', async () => (await shop.read(id)).status === 'COMPLETED')
})

test('a transfer that cannot be read is counted and logged once, and the next one is found', async () => {
  const count = async () =>
    (await shop.ctx.metrics.unreadable.get()).values.find(({ value }) => value > 0)?.value ?? 0
  returns((bytes) => bytes, 2)
  const ids = [await payByHand()]
  await until('the refused version is counted', async () => (await count()) === 1)
  returns((bytes) => bytes.subarray(0, -1), 1)
  ids.push(await payByHand())
  await until('the damaged one is counted', async () => (await count()) >= 2)
  const lines = shop.logged.filter((line) => String(line.msg).includes('cannot be read'))
  assert.deepEqual(
    lines.map(({ checkoutId }) => checkoutId),
    ids,
  )
  node.lie = (_call, result) => result
  const id = await payByHand()
  await until('the readable one is paid', async () => (await shop.read(id)).status === 'COMPLETED')
})

test('a settler signs no transaction of version 1', async () => {
  const { accepts } = await shop.require(await shop.create())
  const [accepted] = accepts
  assert(accepted)
  const { value } = await chain.rpc<{ value: { blockhash: string } }>('getLatestBlockhash')
  const wire = await svmTransaction(accepted, await chain.payer(), value)
  const bytes = toVersion1(Buffer.from(wire, 'base64'))
  const transaction = decodeAnyTransaction(bytes)
  assert(transaction)
  assert(transaction.accounts.includes(usdc))
  assert.equal(decodeTransaction(bytes), null)
  const exact = readExact(transaction, chain.network)
  assert('refusal' in exact)
})
