import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import { x402Client } from '@x402/core/client'
import { encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import {
  type Address,
  BaseError,
  concat,
  decodeFunctionResult,
  domainSeparator,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  parseAbi,
  parseEventLogs,
  parseSignature,
  type TransactionReceipt,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { compileContracts } from '../../../contracts/compile.ts'
import { readArtifacts } from '../../../src/dev/local-chain.ts'
import {
  attackerAbi,
  authorizationArguments,
  encodeTransfer,
  fundedKey,
  multicallAbi,
  multicallAddress,
  newNonce,
  newPayer,
  openChain,
  type Payer,
  paymentHeader,
  type Signed,
  signAuthorization,
  signCancellation,
  tokenAbi,
} from '../../support/chain.ts'

const chain = await openChain()
const baseChain = await openChain({ network: 'BASE_MAINNET' })
const timedChain = await openChain({ blockTimeSeconds: 1 })

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const walletAbi = parseAbi(['function setRefusing(bool refusing)'])
const used = 'FiatTokenV2: authorization is used or canceled'

/** A payer with 100 units who has signed 40 of them away, and everything about it that a test may change. */
async function makePayment(
  changes: Partial<Parameters<typeof signAuthorization>[0]> & { payer?: Payer } = {},
) {
  const { payer = newPayer(), ...rest } = changes
  const to = newPayer().address
  await chain.mint(rest.from ?? payer.address, 100n)
  const signed = await signAuthorization({
    key: payer.key,
    domain: chain.domain,
    to,
    value: 40n,
    validBefore: (await chain.time()) + 600n,
    ...rest,
  })
  return { payer, ...signed, to: signed.authorization.to }
}

const settle = async (signed: Signed): Promise<TransactionReceipt> =>
  await chain.perform({ to: chain.token, data: encodeTransfer(signed) })

/** What the token says to a call in the newest block; null if it does not refuse. */
async function refusal(data: Hex, to: Address = chain.token): Promise<string | null> {
  try {
    await chain.client.call({ to, data, gas: 1_000_000n })
    return null
  } catch (error) {
    assert(error instanceof BaseError)
    return error.details.replace('execution reverted: ', '')
  }
}

/** The call by the overload that takes v, r and s. */
function encodeSplitTransfer({ authorization, signature }: Signed): Hex {
  const { r, s, v } = parseSignature(signature)
  return encodeFunctionData({
    abi: tokenAbi,
    functionName: 'transferWithAuthorization',
    args: [...authorizationArguments(authorization), Number(v), r, s],
  })
}

/** Refused in a call and in a block, and nothing moved. */
async function assertRefused(signed: Signed, reason: string): Promise<void> {
  assert.equal(await refusal(encodeTransfer(signed)), reason)
  const { status, logs } = await settle(signed)
  assert.deepEqual({ status, logs }, { status: 'reverted', logs: [] })
  assert.equal(await chain.balance(signed.authorization.to), 0n)
}

async function assertPaid(signed: Signed): Promise<void> {
  const { status } = await settle(signed)
  assert.equal(status, 'success')
  assert.equal(await chain.balance(signed.authorization.to), BigInt(signed.authorization.value))
}

const call = (functionName: 'pause' | 'unpause') =>
  chain.perform({ to: chain.token, data: encodeFunctionData({ abi: tokenAbi, functionName }) })
const callWith = (functionName: 'blacklist' | 'unBlacklist', account: Address) =>
  chain.perform({
    to: chain.token,
    data: encodeFunctionData({ abi: tokenAbi, functionName, args: [account] }),
  })

test('artifacts.json is what the compiler makes of the contracts', async () => {
  assert.deepEqual(
    await readArtifacts(),
    compileContracts(),
    'Run node server/contracts/compile.ts and commit the result.',
  )
})

test('the token stands at the address of each network, with the domain that payers sign there', async () => {
  for (const { client, token, domain, network } of [chain, baseChain]) {
    const read = (functionName: 'name' | 'version' | 'symbol' | 'decimals' | 'DOMAIN_SEPARATOR') =>
      client.readContract({ address: token, abi: tokenAbi, functionName })
    assert.equal(await read('DOMAIN_SEPARATOR'), domainSeparator({ domain }))
    assert.deepEqual(
      [await read('name'), await read('version'), await read('symbol'), await read('decimals')],
      [network.assets[0]?.domain.name, '2', 'USDC', 6],
    )
  }
  assert.equal(chain.domain.name, 'USDC')
  assert.equal(baseChain.domain.name, 'USD Coin')
})

test('an authorization pays, by either overload', async () => {
  await assertPaid(await makePayment())
  const payment = await makePayment()
  const { status } = await chain.perform({ to: chain.token, data: encodeSplitTransfer(payment) })
  assert.equal(status, 'success')
  assert.equal(await chain.balance(payment.to), 40n)
})

test('AuthorizationUsed comes first and its Transfer directly after it, for each of a batch', async () => {
  const payments = [await makePayment(), await makePayment(), await makePayment({ value: 0n })]
  const calls = payments.map((payment) => ({
    target: chain.token,
    allowFailure: true,
    callData: encodeTransfer(payment),
  }))
  const { logs } = await chain.perform({
    to: multicallAddress,
    data: encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] }),
  })
  const events = parseEventLogs({ abi: tokenAbi, logs })
  assert.deepEqual(
    events.map(({ logIndex, eventName, args }) => ({ logIndex, eventName, args })),
    payments.flatMap(({ authorization: { from, to, value, nonce } }, i) => [
      { logIndex: 2 * i, eventName: 'AuthorizationUsed', args: { authorizer: from, nonce } },
      { logIndex: 2 * i + 1, eventName: 'Transfer', args: { from, to, value: BigInt(value) } },
    ]),
  )
})

test('validAfter is exclusive: refused in its second, paid in the next', async () => {
  const at = (await chain.time()) + 100n
  const payment = await makePayment({ validAfter: at, validBefore: at + 600n })
  await chain.setNextBlockTimestamp(at)
  const early = await settle(payment)
  assert.equal(await chain.time(), at)
  assert.equal(early.status, 'reverted')
  assert.equal(await refusal(encodeTransfer(payment)), 'FiatTokenV2: authorization is not yet valid')
  await chain.setNextBlockTimestamp(at + 1n)
  await assertPaid(payment)
})

test('validBefore is exclusive: paid in the second before it, refused in its own', async () => {
  const at = (await chain.time()) + 100n
  const [payment, late] = [await makePayment({ validBefore: at }), await makePayment({ validBefore: at })]
  await chain.setNextBlockTimestamp(at - 1n)
  await assertPaid(payment)
  await chain.setNextBlockTimestamp(at)
  const receipt = await settle(late)
  assert.equal(await chain.time(), at)
  assert.equal(receipt.status, 'reverted')
  assert.equal(await refusal(encodeTransfer(late)), 'FiatTokenV2: authorization is expired')
})

test('a nonce is good once', async () => {
  const payment = await makePayment()
  await assertPaid(payment)
  assert.equal(await refusal(encodeTransfer(payment)), used)
  assert.equal((await settle(payment)).status, 'reverted')
  assert.equal(await chain.balance(payment.to), 40n)
})

test('a nonce spent on another authorization is used, though nothing was paid to the first', async () => {
  const payment = await makePayment()
  const { nonce } = payment.authorization
  await assertPaid(await makePayment({ payer: payment.payer, nonce, value: 1n }))
  assert(await chain.isNonceUsed(payment.payer.address, nonce))
  await assertRefused(payment, used)
})

test('nonces are apart for each payer', async () => {
  const nonce = newNonce()
  await assertPaid(await makePayment({ nonce }))
  await assertPaid(await makePayment({ nonce }))
})

test('a cancelled authorization is used and says so in a log, by either overload', async () => {
  for (const overload of ['bytes', 'vrs']) {
    const payment = await makePayment()
    const { nonce, from } = payment.authorization
    const signature = await signCancellation({ key: payment.payer.key, domain: chain.domain, nonce })
    const { r, s, v } = parseSignature(signature)
    const { logs } = await chain.perform({
      to: chain.token,
      data: encodeFunctionData({
        abi: tokenAbi,
        functionName: 'cancelAuthorization',
        args: overload === 'bytes' ? [from, nonce, signature] : [from, nonce, Number(v), r, s],
      }),
    })
    const [event] = parseEventLogs({ abi: tokenAbi, logs, eventName: 'AuthorizationCanceled' })
    assert.deepEqual(event?.args, { authorizer: from, nonce })
    assert(await chain.isNonceUsed(from, nonce))
    await assertRefused(payment, used)
  }
})

test('only the payee can use an authorization to receive, and one to transfer is none to receive', async () => {
  const payeeKey = fundedKey(3)
  const to = privateKeyToAccount(payeeKey).address
  for (const overload of ['bytes', 'vrs']) {
    const { authorization, signature } = await makePayment({ to, type: 'ReceiveWithAuthorization' })
    const { r, s, v } = parseSignature(signature)
    const inputs = authorizationArguments(authorization)
    const data = encodeFunctionData({
      abi: tokenAbi,
      functionName: 'receiveWithAuthorization',
      args: overload === 'bytes' ? [...inputs, signature] : [...inputs, Number(v), r, s],
    })
    assert.equal(await refusal(data), 'FiatTokenV2: caller must be the payee')
    assert.equal(
      await refusal(encodeTransfer({ authorization, signature })),
      'FiatTokenV2: invalid signature',
    )
    assert.equal((await chain.perform({ to: chain.token, data, from: to })).status, 'success')
  }
  assert.equal(await chain.balance(to), 80n)
})

test('a signature with a high s is refused', async () => {
  const payment = await makePayment()
  const { r, s, v } = parseSignature(payment.signature)
  const high = numberToHex(order - BigInt(s), { size: 32 })
  const signature = concat([r, high, numberToHex(v === 27n ? 28 : 27)])
  await assertRefused({ ...payment, signature }, "ECRecover: invalid signature 's' value")
})

test('a signature with v 0 or 1 is refused', async () => {
  const payment = await makePayment()
  const { r, s, yParity } = parseSignature(payment.signature)
  const signature = concat([r, s, numberToHex(yParity, { size: 1 })])
  await assertRefused({ ...payment, signature }, "ECRecover: invalid signature 'v' value")
})

test('a signature of any length but 65 bytes is refused, the compact form of 64 included', async () => {
  const payment = await makePayment()
  const { r, s, yParity } = parseSignature(payment.signature)
  const compact = concat([r, numberToHex(BigInt(s) | (BigInt(yParity) << 255n), { size: 32 })])
  for (const signature of [compact, concat([payment.signature, '0x00']), '0x'] as const)
    await assertRefused({ ...payment, signature }, 'ECRecover: invalid signature length')
})

test('a signature of somebody else, of other numbers or for another domain is refused', async () => {
  const payment = await makePayment()
  const { payer, authorization } = payment
  const stranger = await makePayment({ from: payer.address })
  const elsewhere = await makePayment({ payer, domain: { ...chain.domain, name: 'USD Coin' } })
  const raised: Signed = { ...payment, authorization: { ...authorization, value: '41' } }
  for (const signed of [stranger, elsewhere, raised])
    await assertRefused(signed, 'FiatTokenV2: invalid signature')
})

test('a contract wallet pays by ERC-1271 for as long as it agrees', async () => {
  const payer = newPayer()
  const from = await chain.deploy('OwnedWallet', [payer.address])
  await assertPaid(await makePayment({ payer, from }))
  const payment = await makePayment({ payer, from })
  const setRefusing = (refusing: boolean) =>
    chain.perform({
      to: from,
      data: encodeFunctionData({ abi: walletAbi, functionName: 'setRefusing', args: [refusing] }),
    })
  await setRefusing(true)
  await assertRefused(payment, 'FiatTokenV2: invalid signature')
  await setRefusing(false)
  await assertPaid(payment)
})

test('a contract wallet can burn all the gas of a transaction', async () => {
  const payment = await makePayment({ from: await chain.deploy('BurningWallet') })
  const gas = 1_000_000n
  const { status, gasUsed } = await chain.perform({ to: chain.token, data: encodeTransfer(payment), gas })
  assert.equal(status, 'reverted')
  assert(gasUsed > 950_000n, `${gasUsed}`)
})

test('where an address has code its key does not count, whether placed or delegated by EIP-7702', async () => {
  const stranger = newPayer()
  const wallet = await chain.deploy('OwnedWallet', [stranger.address])
  const placed = await makePayment()
  await chain.client.setCode({
    address: placed.payer.address,
    bytecode: (await chain.client.getCode({ address: wallet })) ?? '0x',
  })
  const delegated = await makePayment()
  await chain.client.sendTransaction({
    account: privateKeyToAccount(fundedKey(4)),
    chain: null,
    to: delegated.payer.address,
    gas: 200_000n,
    authorizationList: [
      await privateKeyToAccount(delegated.payer.key).signAuthorization({
        address: wallet,
        chainId: chain.domain.chainId,
        nonce: 0,
      }),
    ],
  })
  await chain.mine()
  assert.equal(
    await chain.client.getCode({ address: delegated.payer.address }),
    concat(['0xef0100', wallet]).toLowerCase(),
  )
  for (const payment of [placed, delegated]) {
    await assertRefused(payment, 'FiatTokenV2: invalid signature')
    await assertPaid(await makePayment({ payer: stranger, from: payment.payer.address }))
  }
})

test('a blacklisted payer or payee is refused until it is let off', async () => {
  for (const party of ['from', 'to'] as const) {
    const payment = await makePayment()
    const account = payment.authorization[party]
    await callWith('blacklist', account)
    await assertRefused(payment, 'Blacklistable: account is blacklisted')
    await callWith('unBlacklist', account)
    await assertPaid(payment)
  }
})

test('a paused token refuses to pay and to cancel until it goes on', async () => {
  const payment = await makePayment()
  const { payer, authorization } = payment
  const { nonce } = authorization
  const signature = await signCancellation({ key: payer.key, domain: chain.domain, nonce })
  await call('pause')
  await assertRefused(payment, 'Pausable: paused')
  const cancel = encodeFunctionData({
    abi: tokenAbi,
    functionName: 'cancelAuthorization',
    args: [payer.address, nonce, signature],
  })
  assert.equal(await refusal(cancel), 'Pausable: paused')
  await call('unpause')
  await assertPaid(payment)
})

test('nobody pays more than they have, and the nonce stays unused', async () => {
  const payment = await makePayment({ value: 101n })
  await assertRefused(payment, 'ERC20: transfer amount exceeds balance')
  assert.equal(await chain.isNonceUsed(payment.payer.address, payment.authorization.nonce), false)
  await chain.mint(payment.payer.address, 1n)
  await assertPaid(payment)
})

test('checks come in the order of the real token: pause, blacklist, time, nonce, signature, balance', async () => {
  const payer = newPayer()
  const nonce = newNonce()
  await assertPaid(await makePayment({ payer, nonce }))
  const now = await chain.time()
  const wrong = { payer, nonce, validAfter: now + 100n, validBefore: now, value: 1_000_000n }
  const payment = { ...(await makePayment(wrong)), signature: '0x' as const }
  await callWith('blacklist', payer.address)
  await call('pause')
  const says = async (reason: string) => assert.equal(await refusal(encodeTransfer(payment)), reason)
  await says('Pausable: paused')
  await call('unpause')
  await says('Blacklistable: account is blacklisted')
  await callWith('unBlacklist', payer.address)
  await says('FiatTokenV2: authorization is not yet valid')
  payment.authorization = { ...payment.authorization, validAfter: '0' }
  await says('FiatTokenV2: authorization is expired')
  payment.authorization = { ...payment.authorization, validBefore: `${now + 600n}` }
  await says(used)
  payment.authorization = { ...payment.authorization, nonce: newNonce() }
  await says('ECRecover: invalid signature length')
})

test('an authorization of nothing can be settled', async () => {
  const payment = await makePayment({ value: 0n })
  await assertPaid(payment)
  assert.equal((await chain.transferLogs({ to: payment.to })).length, 1)
})

test('a marker after the arguments is ignored, by either overload', async () => {
  const marker: Hex = '0x00112233445566778899aabbccddeeff'
  for (const encode of [encodeTransfer, encodeSplitTransfer]) {
    const payment = await makePayment()
    const data = concat([encode(payment), marker])
    const { status, logs } = await chain.perform({ to: chain.token, data })
    assert.equal(status, 'success')
    assert.equal(logs.length, 2)
    assert.equal(await chain.balance(payment.to), 40n)
  }
})

test('somebody else can settle from inside a contract; ours then reverts and the money is there once', async () => {
  const payment = await makePayment()
  const decoy = await makePayment({ value: 1n })
  const calls = [decoy, payment].map((signed) => ({ target: chain.token, data: encodeTransfer(signed) }))
  const { status } = await chain.perform({
    to: await chain.deploy('Attacker'),
    data: encodeFunctionData({ abi: attackerAbi, functionName: 'run', args: [calls] }),
  })
  assert.equal(status, 'success')
  assert.equal((await settle(payment)).status, 'reverted')
  assert.equal(await chain.balance(payment.to), 40n)
})

test('aggregate3 lets calls fail that may, with their reason, and pays the others', async () => {
  const [good, bad] = [await makePayment(), await makePayment({ value: 1000n })]
  const batch = (allowFailure: boolean) =>
    encodeFunctionData({
      abi: multicallAbi,
      functionName: 'aggregate3',
      args: [
        [bad, good].map((signed) => ({
          target: chain.token,
          allowFailure,
          callData: encodeTransfer(signed),
        })),
      ],
    })
  const { data } = await chain.client.call({ to: multicallAddress, data: batch(true) })
  const results = decodeFunctionResult({ abi: multicallAbi, functionName: 'aggregate3', data: data ?? '0x' })
  assert.deepEqual(
    results.map(({ success }) => success),
    [false, true],
  )
  const reason = Buffer.from('ERC20: transfer amount exceeds balance').toString('hex')
  assert(results[0]?.returnData.includes(reason))
  assert.equal(await refusal(batch(false), multicallAddress), 'Multicall3: call failed')
  assert.equal((await chain.perform({ to: multicallAddress, data: batch(false) })).status, 'reverted')
  assert.equal(await chain.balance(good.to), 0n)
  assert.equal((await chain.perform({ to: multicallAddress, data: batch(true) })).status, 'success')
  assert.deepEqual([await chain.balance(bad.to), await chain.balance(good.to)], [0n, 40n])
})

test('Multicall3 tells the block, its time and a balance', async () => {
  const abi = parseAbi([
    'function getBlockNumber() view returns (uint256 blockNumber)',
    'function getCurrentBlockTimestamp() view returns (uint256 timestamp)',
    'function getEthBalance(address addr) view returns (uint256 balance)',
  ])
  const address = multicallAddress
  const account = privateKeyToAccount(fundedKey(8)).address
  const { number, timestamp } = await chain.client.getBlock()
  const read = chain.client.readContract
  assert.equal(await read({ address, abi, functionName: 'getBlockNumber' }), number)
  assert.equal(await read({ address, abi, functionName: 'getCurrentBlockTimestamp' }), timestamp)
  assert.equal(
    await read({ address, abi, functionName: 'getEthBalance', args: [account] }),
    10_000n * 10n ** 18n,
  )
})

test('a reorg drops the receipt and the money, and the same bytes sent again are mined under the same hash', async () => {
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

test('safe is four blocks behind the newest and finalized eight', async () => {
  await chain.mine(8)
  const [latest, safe, finalized] = await Promise.all(
    (['latest', 'safe', 'finalized'] as const).map((blockTag) => chain.client.getBlock({ blockTag })),
  )
  assert(latest && safe && finalized)
  assert.deepEqual([latest.number - safe.number, latest.number - finalized.number], [4n, 8n])
})

test('paymentHeader is byte for byte what the stock x402 client sends', async () => {
  const { key, address } = newPayer()
  const required: PaymentRequired = {
    x402Version: 2,
    resource: {
      url: 'https://farthing.example/api/v1/checkouts/ch_1',
      description: '',
      mimeType: 'text/plain',
    },
    accepts: [
      {
        scheme: 'exact',
        network: chain.network.caip2,
        asset: chain.token,
        amount: '1500000',
        payTo: address,
        maxTimeoutSeconds: 60,
        extra: { name: chain.domain.name, version: chain.domain.version },
      },
    ],
  }
  const stock = new x402Client()
    .register('eip155:31337', new ExactEvmScheme(privateKeyToAccount(key)))
    .setSpendControls(false)
  const payload = await stock.createPaymentPayload(
    required as Parameters<typeof stock.createPaymentPayload>[0],
  )
  const { authorization } = payload.payload as Signed
  const validBefore = BigInt(authorization.validBefore)
  const header = await paymentHeader(required, key, { nonce: authorization.nonce, validBefore })
  assert.equal(header, encodePaymentSignatureHeader(payload))
  assert(validBefore > BigInt(Math.floor(Date.now() / 1000)))
})

test('a chain with timed blocks mines by itself what parallel senders send', async () => {
  const { client } = timedChain
  const statuses = Array.from({ length: 9 }, async (_, index) => {
    const account = privateKeyToAccount(fundedKey(index))
    const hash = await client.sendTransaction({ account, to: account.address, gas: 21_000n, chain: null })
    return (await client.waitForTransactionReceipt({ hash })).status
  })
  assert.deepEqual(await Promise.all(statuses), Array(9).fill('success'))
})

test('a chain ends with the process that started it, even when that is killed', {
  timeout: 30_000,
}, async () => {
  const start = `
    import { startLocalChain } from '${new URL('../../../src/dev/local-chain.ts', import.meta.url)}'
    const { url } = await startLocalChain({ chainId: 31337, blockTimeSeconds: null, assets: [] })
    console.log(url)
    process.stdin.resume()`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', start], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [url] = await once(createInterface({ input: parent.stdout }), 'line')
  const socket = connect({ host: '127.0.0.1', port: Number.parseInt(new URL(url).port, 10) })
  await once(socket, 'connect')
  // Nobody but the guard can end anvil now, and its end closes the connection, with an error or without.
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
