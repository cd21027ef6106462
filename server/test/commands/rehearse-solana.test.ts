import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { getBase58Decoder } from '@solana/kit'
import { openChain } from '../support/chain/open.ts'
import { newSettler } from '../support/chain/svm.ts'
import { until } from '../support/until.ts'
import { openOperated } from './support/operated.ts'

/** The same as on Base Sepolia, by an operator on Solana. */
const chain = await openChain({ network: 'SOLANA_LOCAL' })
const { id } = chain.network
const deployment = await openOperated(chain.network, `one=${chain.url}`)
/** Wallets that hold no SOL, with keys as people have them. */
const [payer, wallet] = [await newSettler(chain, 0n), await newSettler(chain, 0n)]
await chain.fund(wallet.address, { token: [chain.mint, 0n] })
await chain.fund(payer.address, { token: [chain.mint, 0n] })

const [, settler = ''] = /^Settler (\w+)$/m.exec(await deployment.do('settler', 'create', id)) ?? []
await chain.fund(settler, { lamports: 10_000_000_000n })
await deployment.do('settler', 'add', id, settler)
await deployment.do('store', 'create', '--name', 'Shop', '--test', '--solana-wallet', wallet.address)
await deployment.start()

const payerKey = await deployment.write('payer.key', getBase58Decoder().decode(payer.secret))
const walletKey = await deployment.write('wallet.key', `[${[...wallet.secret]}]\n`)
const line = [id, '--payer-key', payerKey, '--wallet-key', walletKey]

const hold = async () =>
  await Promise.all([payer, wallet].map(({ address }) => chain.balance(address, chain.mint)))

test('a payer without money is told where to send how much, and nothing moves', async () => {
  const { code, out } = await deployment.rehearseHere(line)
  assert.equal(code, 1)
  assert.match(out, new RegExp(`Send 0\\.01 USDC on Local Solana chain to ${payer.address}`))
  assert.deepEqual(await hold(), [0n, 0n])
})

test('runs that are killed on the way pay one cent in all, refund it, and wait until both are final', async () => {
  await chain.fund(payer.address, { token: [chain.mint, 30_000n] })
  const killWhen = async (what: string, isThere: () => Promise<boolean>) => {
    const command = deployment.begin(['rehearse', ...line])
    await until(what, async () => (await isThere()) || /^(Passed|Stopped)/m.test(command.output()))
    command.kill()
    await command.ended
  }
  await killWhen('the cent has arrived', async () => (await hold())[1] === 10_000n)
  await killWhen('the refund is signed', async () => (await readdir(`${walletKey}.signed`)).length > 0)
  // A refund whose signature never arrived is canceled first, once it can no longer land.
  let out = ''
  await until('a run passes', async () => {
    const ran = await deployment.rehearseHere(line)
    out = ran.out
    return ran.code === 0
  })
  assert.match(out, /^ok {5}finality: safe after \d+\.\d s, final after \d+\.\d s$/m)
  assert.match(out, /^ok {5}refund: 0\.01 USDC back to/m)
  assert.match(out, /^Passed\./m)
  assert.deepEqual(await hold(), [30_000n, 0n])
})

test('a second run pays nothing, and another cent only if it is asked to', async () => {
  const second = await deployment.rehearseHere(line)
  assert.match(second.out, /^Passed\. This run paid nothing/m)
  assert.deepEqual(await hold(), [30_000n, 0n])
  const [, last = ''] = /--after (ch_\w+)$/m.exec(second.out) ?? []
  const third = await deployment.rehearseHere([id, '--payer-key', payerKey, '--after', last])
  assert.match(third.out, /^Passed\. To pay/m)
  assert.deepEqual(await hold(), [20_000n, 10_000n])
})
