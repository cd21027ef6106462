/** The process that holds the settlers' keys, as those see it who ask it: work, an intruder, and an operator. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { generateKeyPairSigner } from '@solana/kit'
import { deployData, deployer } from '../../../src/chains/evm/batcher.ts'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import type { Hex } from '../../../src/chains/hex.ts'
import { connectToSigner } from '../../../src/chains/signers/connect.ts'
import { lineBytesMax } from '../../../src/chains/signers/protocol.ts'
import { SignerAwayError, SignRefusedError } from '../../../src/chains/signers/signing.ts'
import { openSpending } from '../../../src/chains/signers/spending.ts'
import { compileCreation } from '../../../src/chains/svm/create-account.ts'
import { decodeTransaction } from '../../../src/chains/svm/message.ts'
import { makeSvmKey, openSvmSigner } from '../../../src/chains/svm/signer.ts'
import { networks } from '../../../src/networks.ts'
import { openRemote } from '../../../src/payments/rails.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { type Changes, svmTransaction } from '../../support/chain/svm-payment.ts'
import { patienceMs } from '../../support/patience.ts'
import { startProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const base = networks.find(({ id }) => id === 'BASE_MAINNET')
const solana = networks.find(({ id }) => id === 'SOLANA_MAINNET')
assert(base?.family === 'EVM' && solana?.family === 'SOLANA')
const folder = await mkdtemp(join(tmpdir(), 'farthing-signer-'))
atEnd(() => rm(folder, { recursive: true, force: true }))
const path = join(folder, 'socket')
const keysFile = join(folder, 'settler.keys')
const svmKey = makeSvmKey()
await writeFile(keysFile, `${fundedKey(1)}\n${svmKey}\n`, { mode: 0o600 })
const local = openSigner(fundedKey(1))
const svmLocal = openSvmSigner(Uint8Array.from(JSON.parse(svmKey)))
const settings = {
  SIGNER_SOCKET: path,
  SETTLER_KEYS_FILE: keysFile,
  NETWORKS: 'BASE_MAINNET,SOLANA_MAINNET',
  SOLANA_TOKEN_ACCOUNTS_PER_DAY: '1',
  SETTLER_ETH_PER_DAY: '0.001',
}
const start = () => startProcess('signer', settings)
let running = await start()
const client = connectToSigner(path, patienceMs)
atEnd(() => client.close())
await client.list()
const remote = openRemote(client, local.address)
const svmRemote = openRemote(client, svmLocal.address)
assert(remote.family === 'EVM' && svmRemote.family === 'SOLANA')

const on = { network: base, chainId: 8_453 }
const fill = {
  to: local.address,
  data: '0x' as Hex,
  nonce: 1,
  gas: 21_000n,
  maxFeePerGas: 1_000_000n,
  maxPriorityFeePerGas: 1n,
}
const deployment = { ...fill, to: deployer, data: deployData, gas: 200_000n, nonce: 2 }
const payer = await generateKeyPairSigner()
const accepted = {
  ...{
    scheme: 'exact' as const,
    network: solana.caip2,
    asset: solana.assets[0]?.address ?? '',
    amount: '1000000',
  },
  ...{ payTo: '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR', maxTimeoutSeconds: 300 },
  extra: { feePayer: svmLocal.address, memo: 'ch_0001m7f6egj0pj5kgr03g9syb7xk' },
} as const
const blockhash = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'
async function svmPayment(changes: Changes = {}) {
  const text = await svmTransaction(accepted, payer, { blockhash, ...changes })
  return decodeTransaction(Buffer.from(text, 'base64')) ?? assert.fail('not a transaction')
}

/** Sends this as somebody who found the socket, and returns everything that is answered until the connection ends. */
async function shout(...chunks: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(path)
  let heard = ''
  socket.on('data', (chunk) => {
    heard += chunk
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  for (const chunk of chunks) socket.write(chunk)
  await closed
  return heard
}

const isRefused = (reason: RegExp) => (error: unknown) =>
  error instanceof SignRefusedError && reason.test(error.message)

test('a signature through the socket gives the same bytes as the key file, on both families', async () => {
  for (const transaction of [fill, deployment])
    assert.deepEqual(await remote.sign(on, transaction), await local.sign(on, transaction))
  const payment = await svmPayment()
  assert.deepEqual(await svmRemote.complete(solana, payment), await svmLocal.complete(solana, payment))
  const creation = await compileCreation(svmLocal.address, payer.address, accepted.asset, {
    blockhash,
    lastValidBlockHeight: 1n,
  })
  assert.deepEqual(await svmRemote.signOwn(solana, creation), await svmLocal.signOwn(solana, creation))
  // One a day: the same again is the same transaction, another is refused.
  await svmRemote.signOwn(solana, creation)
  const another = await compileCreation(svmLocal.address, svmLocal.address, accepted.asset, {
    blockhash,
    lastValidBlockHeight: 1n,
  })
  await assert.rejects(svmRemote.signOwn(solana, another), isRefused(/today's limit of 1 is used up/))
})

test('what the policy forbids is refused through the socket too, with a line in the signer’s log', async () => {
  await assert.rejects(remote.sign(on, { ...fill, to: payTo }), isRefused(/a settler must not call/))
  await assert.rejects(remote.sign(on, { ...fill, data: '0x00' }), isRefused(/a settler must not call/))
  await assert.rejects(
    remote.sign({ ...on, network: { ...base, caip2: 'eip155:1' } }, fill),
    isRefused(/eip155:1 is not one of its networks/),
  )
  const stranger = openRemote(client, payTo)
  assert(stranger.family === 'EVM')
  await assert.rejects(stranger.sign(on, fill), isRefused(/does not hold the key/))
  for (const [changes, reason] of [
    [{ mint: payer.address }, /is not a known token/],
    [{ feePayer: payer.address }, /exact transfers|another fee payer/],
    [{ units: 1_000_000n }, /compute_limit_instruction_too_high/],
    [{ price: 1_000_000n }, /compute_price_instruction_too_high/],
    [{ memo: null }, /memo_count/],
  ] as const) {
    const wrong = await svmPayment(changes)
    await assert.rejects(svmRemote.complete(solana, wrong), isRefused(reason))
    await assert.rejects(svmLocal.complete(solana, wrong), isRefused(reason))
  }
  // A message that a settler would sign alone may only create an account: a payment is none.
  await assert.rejects(
    svmRemote.signOwn(solana, (await svmPayment()).message),
    isRefused(/may only create token accounts/),
  )
  await until('the refusals are logged', async () =>
    /"reason":"a settler must not call/.test(running.output()),
  )
  assert.match(
    running.output(),
    /"network":"BASE_MAINNET","settler":"0x\w+","reason":"[^"]+","msg":"refused to sign"/,
  )
})
const payTo: Hex = '0x00000000000000000000000000000000deadbeef'

test('what a key has signed away today is kept when the signer is killed, and the limit holds after it', async () => {
  const dear = { ...fill, gas: 21_000n, maxFeePerGas: 20_000_000_000n }
  for (const nonce of [10, 11]) await remote.sign(on, { ...dear, nonce })
  await assert.rejects(
    remote.sign(on, { ...dear, nonce: 12 }),
    isRefused(/today's limit of 1000000000000000/),
  )
  await running.kill('SIGKILL')
  await until('the client notices', async () => client.isAway())
  await assert.rejects(remote.sign(on, dear), SignerAwayError)
  running = await start()
  await until('the client is back', async () => !client.isAway())
  await assert.rejects(remote.sign(on, { ...dear, nonce: 12 }), isRefused(/today's limit/))
  assert.match(await readFile(`${path}.spent`, 'utf8'), /^\{"day":"\d{4}-\d\d-\d\d","sums":\{/)
  assert.throws(
    () => openSpending(() => new Date(), keysFile),
    SyntaxError,
    'a file that is not ours is no zero',
  )
})

test('a client that speaks garbage is cut off, and hurts nobody else', async () => {
  const garbage: readonly (readonly (string | Buffer)[])[] = [
    ['GET / HTTP/1.1\r\n'],
    ['{"id":1}\n'],
    ['[]\n'],
    ['null\n'],
    ['{"id":"1","list":true}\n'],
    ['{"id":1,"list":true,"more":1}\n'],
    ['{"id":1,"network":"eip155:8453","address":"0x","sign":null}\n'],
    [Buffer.from([0xff, 0xfe, 0x00, 0x0a])],
    [Buffer.alloc(lineBytesMax + 1, 'x')],
    ['{"__proto__":{"list":true},"id":1}\n'],
  ]
  const signed = garbage.map(async (chunks, i) => {
    const [heard] = await Promise.all([shout(...chunks), remote.sign(on, { ...fill, nonce: 20 + i })])
    assert.match(heard, /^\{"id":null,"refusal":"[^"]+"\}\n$/, String(chunks[0]).slice(0, 50))
  })
  await Promise.all(signed)
  // Well-formed questions with nonsense in them are refused one by one.
  const nonsense = [
    {},
    { ...fill, gas: '1e9' },
    { to: 1 },
    { ...fill, gas: '1', maxFeePerGas: '1', more: 1 },
    [],
  ]
  const socket = connect(path)
  const lines = nonsense.map((sign, id) =>
    JSON.stringify({ id, network: base.caip2, address: local.address, sign }, (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    ),
  )
  socket.write(`${lines.join('\n')}\n`)
  let heard = ''
  socket.on('data', (chunk) => {
    heard += chunk
  })
  await until('all are answered', async () => heard.split('\n').length > nonsense.length)
  socket.destroy()
  for (const line of heard.trim().split('\n')) assert.match(line, /"refusal":"it is not a transaction"/)
  assert.deepEqual(await client.list(), [local.address, svmLocal.address])
  assert.equal(running.child.exitCode, null)
})

test('the socket is its owner’s alone; a second signer, a foreign file and a socket that is open to all are refused', async () => {
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  await Promise.all([
    assert.rejects(start(), /Another signer answers at/),
    assert.rejects(startProcess('signer', { ...settings, SIGNER_SOCKET: keysFile }), /is not a socket/),
    assert.rejects(
      startProcess('signer', { SIGNER_SOCKET: path }),
      /needs SIGNER_SOCKET, .* SETTLER_KEYS_FILE/,
    ),
  ])
  await chmod(path, 0o666)
  const careful = connectToSigner(path, 50)
  await assert.rejects(careful.list(), /every user of this machine can reach it; its mode must be 600 or 660/)
  careful.close()
  await chmod(path, 0o600)
})
