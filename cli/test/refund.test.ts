/** Refunds on a real chain, by the SDK with a signer of its own and by the command line. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createClient, FarthingError, type Payment, type Refund, RefundMismatch } from '@farthing/sdk'
import { privateKeyToAccount } from 'viem/accounts'
import { openPaidStore } from '../../sdk/test/support/shops.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { fundedKey } from '../../server/test/support/chain/evm.ts'
import { newPayer, type Payer } from '../../server/test/support/chain/evm-payment.ts'
import { patienceMs } from '../../server/test/support/patience.ts'
import { payTo } from '../../server/test/support/shop.ts'
import { until } from '../../server/test/support/until.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const shop = await openPaidStore()
const { refunds } = shop.client
/** The wallet that the store is paid to, which it has proven. */
const wallet = privateKeyToAccount(fundedKey(1))
assert.equal(wallet.address, payTo)
await shop.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [shop.store.id])

/** A payment that is final. */
async function paid(priceAmount: string): Promise<{ payment: Payment; payer: Payer }> {
  const payer = await shop.fund()
  const checkoutId = await shop.create(priceAmount)
  const answer = await shop.pay(checkoutId, await shop.sign(checkoutId, payer))
  assert.equal(answer.statusCode, 200, answer.body)
  await shop.chain.mine(12)
  const read = async () => (await shop.client.payments.list({ checkoutId }).page()).data[0]
  await until('the payment is final', async () => (await read())?.finality === 'finalized')
  const payment = await read()
  assert(payment)
  return { payment, payer }
}

async function returnedTo({ address }: Payer): Promise<bigint[]> {
  return (await shop.chain.transferLogs({ from: payTo, to: address })).map(({ args }) => args.value)
}

async function run(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { FARTHING_API_KEY: shop.key, FARTHING_URL: shop.baseUrl, XDG_STATE_HOME: tmpdir(), ...environment },
  })
  atEnd(() => child.kill('SIGKILL'))
  const ran = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    ran.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    ran.err += chunk
  })
  const [code] = await once(child, 'close')
  return { ...ran, code: code as number }
}

test('a store’s own signer refunds half, then the rest; a third try is refused, and signing again moves nothing', async () => {
  const { payment, payer } = await paid('0.80')
  const half = { amount: '400000', recipient: payer.address }
  const asked = await refunds.create(payment.id, { amount: half.amount, reason: 'One of two' })
  const steps: string[] = []
  const options = { waitMs: patienceMs, onProgress: ({ status }: Refund) => void steps.push(status) }
  const done = await refunds.sign(asked.id, wallet, half, options)
  assert.deepEqual([done.status, steps.at(-1)], ['COMPLETED', 'COMPLETED'])
  assert.deepEqual(
    await refunds.sign(asked.id, wallet, half, { waitMs: patienceMs }),
    await refunds.get(asked.id),
  )
  const rest = await refunds.create(payment.id)
  assert.equal(rest.amount, '400000')
  assert.equal((await refunds.sign(rest.id, wallet, half, { waitMs: patienceMs })).status, 'COMPLETED')
  await assert.rejects(
    refunds.create(payment.id),
    (error) => error instanceof FarthingError && error.code === 'refund_exceeds_payment',
  )
  assert.deepEqual(await returnedTo(payer), [400_000n, 400_000n])
  const read = await shop.client.payments.get(payment.id)
  assert.deepEqual([read.refundedAmount, read.refundable], ['800000', '0'])
})

test('an attacker between store and server who changes the recipient gets no signature, and the money stays', async () => {
  const { payment, payer } = await paid('0.30')
  const thief = newPayer()
  const client = createClient({
    apiKey: shop.key,
    baseUrl: shop.baseUrl,
    async fetch(input, init) {
      const answer = await fetch(input, init)
      const text = (await answer.text()).replaceAll(payer.address, thief.address)
      return new Response(text, answer)
    },
  })
  const { id, amount } = await client.refunds.create(payment.id)
  const terms = { amount, recipient: payer.address }
  await assert.rejects(client.refunds.sign(id, wallet, terms), RefundMismatch)
  assert.equal((await refunds.get(id)).status, 'REQUESTED')
  const canceled = await refunds.cancel(id)
  assert.deepEqual([canceled.status, canceled.isCanceling], ['REQUESTED', true])
  await assert.rejects(
    refunds.sign(id, wallet, terms),
    (error) => error instanceof FarthingError && error.code === 'refund_canceled',
  )
  assert.deepEqual([await returnedTo(payer), await returnedTo(thief)], [[], []])
})

test('farthing refund tells each step; without a key it waits to be signed, and farthing refunds lists both', async (t) => {
  const { payment, payer } = await paid('0.50')
  const folder = await mkdtemp(join(tmpdir(), 'farthing-refund-'))
  t.after(() => rm(folder, { recursive: true }))
  const keyFile = join(folder, 'wallet.key')
  await writeFile(keyFile, `${fundedKey(1)}\n`)
  const signing = ['--key-file', keyFile, '--yes']

  const to = ['--to', payer.address]
  const told = await run(['refund', payment.id, '--amount', '0.2', '--text', ...to, ...signing])
  assert.equal(told.code, 0, told.err)
  for (const shown of [
    'Requested rf_',
    '0.20 USDC on Local chain',
    payer.address,
    '✔ Refunded',
    'transaction',
  ])
    assert(told.out.includes(shown), told.out)

  const asked = await run(['refund', payment.id, '--amount', '0.1', '--reason', 'Late'])
  assert.equal(asked.code, 0, asked.err)
  const refund = JSON.parse(asked.out) as Refund
  assert.deepEqual([refund.status, refund.amount, refund.reason], ['REQUESTED', '100000', 'Late'])
  const own = ['refund', 'sign', refund.id, '--amount', '0.1']
  const elsewhere = await run([...own, '--to', newPayer().address, ...signing])
  assert.equal(elsewhere.code, 1)
  assert.match(
    elsewhere.err,
    /refund_mismatch[\s\S]*Nothing was signed|Nothing was signed[\s\S]*refund_mismatch/,
  )
  const more = await run(['refund', 'sign', refund.id, '--amount', '0.11', ...to, ...signing])
  assert.equal(more.code, 1)
  assert.match(more.err, /refund_mismatch/)
  const signed = await run([...own, ...to, ...signing])
  assert.equal(signed.code, 0, signed.err)
  assert.equal((JSON.parse(signed.out) as Refund).status, 'COMPLETED')
  assert.deepEqual(await returnedTo(payer), [200_000n, 100_000n])

  const listed = await run(['refunds', '--payment', payment.id, '--text'])
  assert.match(listed.out, new RegExp(`${refund.id} +COMPLETED +0.10 USDC +${payer.address.slice(0, 6)}`))
  const [, first] = (await refunds.list({ paymentId: payment.id }).page()).data
  assert.match(listed.out, new RegExp(`${first?.id} +COMPLETED +0.20 USDC`))
})

test('farthing refund says in words what is wrong, before anything is created', async () => {
  const { payment } = await paid('0.40')
  const blind = await run(['refund', payment.id, '--yes'], { FARTHING_PRIVATE_KEY: fundedKey(1) })
  assert.equal(blind.code, 2)
  assert.match(blind.err, /pass --amount and --to/)
  const all = ['--amount', '0.40', '--to', newPayer().address, '--yes']
  const other = await run(['refund', payment.id, ...all], { FARTHING_PRIVATE_KEY: newPayer().key })
  assert.equal(other.code, 2)
  assert.match(other.err, /but the payment went to 0x/)
  const unasked = await run(['refund', payment.id], { FARTHING_PRIVATE_KEY: fundedKey(1) })
  assert.deepEqual([unasked.code, /Pass --yes/.test(unasked.err)], [2, true])
  const odd = await run(['refund', payment.id, '--amount', '0.0000001'])
  assert.match(odd.err, /--amount must be in USDC, such as 2.50, with at most 6 decimals/)
  const unread = await run(['refund', payment.id, '--key-file', '/nowhere', ...all])
  assert.match(unread.err, /\/nowhere cannot be read/)
  assert.deepEqual((await refunds.list({ paymentId: payment.id }).page()).data, [])
  const much = await run(['refund', payment.id, '--amount', '5', '--text'])
  assert.equal(much.code, 1)
  assert.match(much.err, /0.40\d* is left of the payment/)
  const asked = await run(['refund', payment.id, '--way', 'self-sent', '--text'])
  assert.match(asked.out, /Send it, then run farthing refund sent rf_/)
  const { id } = (await refunds.list({ paymentId: payment.id }).page()).data[0] ?? assert.fail()
  const declared = await run(['refund', 'sent', id, '--reference', 'Withdrawal 4711', '--text'])
  assert.match(declared.out, /Recorded as your statement/)
  assert.equal((await refunds.get(id)).declared, 'Withdrawal 4711')
})
