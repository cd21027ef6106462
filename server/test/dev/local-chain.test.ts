import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { compileContracts } from '../../contracts/compile.ts'
import { readArtifacts } from '../../src/dev/local-chain.ts'
import { openToken } from '../chains/evm/support/token.ts'
import { fundedKey } from '../support/chain/evm.ts'
import { encodeTransfer } from '../support/chain/evm-payment.ts'
import { openChain } from '../support/chain/open.ts'

const { chain, makePayment, assertPaid } = await openToken()
const timedChain = await openChain({ blockTimeSeconds: 1 })
const fundedAccount = privateKeyToAccount(fundedKey(0)).address

test('artifacts.json is the compiler’s output for the contracts', async () => {
  assert.deepEqual(
    await readArtifacts(),
    compileContracts(),
    'Run node server/contracts/compile.ts and commit the result.',
  )
})

test('a reorg drops the receipt and the transfer, and the same bytes sent again are mined with the same hash', async () => {
  const payment = await makePayment()
  const raw = await privateKeyToAccount(fundedKey(5)).signTransaction({
    type: 'eip1559',
    chainId: chain.domain.chainId,
    nonce: 0,
    to: chain.token,
    data: encodeTransfer(payment),
    gas: 200_000n,
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 1n,
  })
  const send = () => chain.client.sendRawTransaction({ serializedTransaction: raw })
  const hash = await send()
  assert.equal(hash, keccak256(raw))
  await chain.mine(3)
  const first = await chain.client.getTransactionReceipt({ hash })
  assert.equal(first.status, 'success')

  await chain.reorg(3)
  await assert.rejects(chain.client.getTransactionReceipt({ hash }), {
    name: 'TransactionReceiptNotFoundError',
  })
  assert.deepEqual(await chain.transferLogs({ to: payment.to }), [])
  assert.equal(await chain.balance(payment.to), 0n)
  assert.equal(await chain.isNonceUsed(payment.payer.address, payment.authorization.nonce), false)
  const replaced = await chain.client.getBlock({ blockNumber: first.blockNumber })
  assert.notEqual(replaced.hash, first.blockHash)

  assert.equal(await send(), hash)
  await chain.mine()
  const second = await chain.client.getTransactionReceipt({ hash })
  assert.equal(second.status, 'success')
  assert.notEqual(second.blockHash, first.blockHash)
  assert.equal(await chain.balance(payment.to), 40n)
})

test('a dropped transaction is not mined, and can be sent again', async () => {
  const payment = await makePayment()
  const data = encodeTransfer(payment)
  await chain.dropTransaction(await chain.send({ to: chain.token, data }))
  await chain.mine()
  assert.equal(await chain.balance(payment.to), 0n)
  await assertPaid(payment)
})

test('as on Base, a transaction may use 16,777,216 gas and no more', async () => {
  const cap = 16_777_216n
  const [to, data] = [fundedAccount, '0x'] as const
  assert.equal((await chain.perform({ to, data, gas: cap })).status, 'success')
  await assert.rejects(chain.send({ to, data, gas: cap + 1n }), /gas_limit > env.cfg.tx_gas_limit_cap/)
})

test('safe is four blocks behind the latest block, finalized eight', async () => {
  await chain.mine(8)
  const [latest, safe, finalized] = await Promise.all(
    (['latest', 'safe', 'finalized'] as const).map((blockTag) => chain.client.getBlock({ blockTag })),
  )
  assert(latest && safe && finalized)
  assert.deepEqual([latest.number - safe.number, latest.number - finalized.number], [4n, 8n])
})

test('a chain with timed blocks mines the transactions of parallel senders by itself', async () => {
  const { client } = timedChain
  const statuses = Array.from({ length: 9 }, async (_, index) => {
    const account = privateKeyToAccount(fundedKey(index))
    const hash = await client.sendTransaction({ account, to: account.address, gas: 21_000n, chain: null })
    return (await client.waitForTransactionReceipt({ hash })).status
  })
  assert.deepEqual(await Promise.all(statuses), Array(9).fill('success'))
})

test('a chain stops with the process that started it, even if that is killed', {
  timeout: 30_000,
}, async () => {
  const start = `
    import { startLocalChain } from '${new URL('../../src/dev/local-chain.ts', import.meta.url)}'
    const { url } = await startLocalChain({ chainId: 31337, blockTimeSeconds: null, assets: [] })
    console.log(url)
    process.stdin.resume()`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', start], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [url] = await once(createInterface({ input: parent.stdout }), 'line')
  const socket = connect({ host: '127.0.0.1', port: Number.parseInt(new URL(url).port, 10) })
  await once(socket, 'connect')
  // Only the guard can stop anvil now. When anvil stops, the connection closes, with or without an error.
  const closed = new Promise((resolve) =>
    socket
      .resume()
      .on('error', () => {})
      .once('close', resolve),
  )
  parent.kill('SIGKILL')
  await closed
  await assert.rejects(fetch(url))
})
