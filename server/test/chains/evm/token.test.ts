import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  concat,
  decodeFunctionResult,
  domainSeparator,
  encodeFunctionData,
  type Hex,
  parseAbi,
  parseEventLogs,
  parseSignature,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { attackerAbi, fundedKey, multicallAbi, multicallAddress, tokenAbi } from '../../support/chain/evm.ts'
import {
  authorizationArguments,
  encodeTransfer,
  newNonce,
  newPayer,
  signCancellation,
} from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { encodeSplitTransfer, openToken } from './support/token.ts'

const { chain, makePayment, settle, refusal, assertRefused, assertPaid, call, callWith } = await openToken()
const baseChain = await openChain({ network: 'BASE_MAINNET' })
const used = 'FiatTokenV2: authorization is used or canceled'

test('the token is at its address on each network, with the domain that payers sign', async () => {
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

test('an authorization pays through either overload', async () => {
  await assertPaid(await makePayment())
  const payment = await makePayment()
  const { status } = await chain.perform({ to: chain.token, data: encodeSplitTransfer(payment) })
  assert.equal(status, 'success')
  assert.equal(await chain.balance(payment.to), 40n)
})

test('AuthorizationUsed comes first and its Transfer right after it, for each payment in a batch', async () => {
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

test('a nonce can be used only once', async () => {
  const payment = await makePayment()
  await assertPaid(payment)
  assert.equal(await refusal(encodeTransfer(payment)), used)
  assert.equal((await settle(payment)).status, 'reverted')
  assert.equal(await chain.balance(payment.to), 40n)
})

test('a nonce spent on another authorization counts as used, even though the first one paid nothing', async () => {
  const payment = await makePayment()
  const { nonce } = payment.authorization
  await assertPaid(await makePayment({ payer: payment.payer, nonce, value: 1n }))
  assert(await chain.isNonceUsed(payment.payer.address, nonce))
  await assertRefused(payment, used)
})

test('each payer has its own nonces', async () => {
  const nonce = newNonce()
  await assertPaid(await makePayment({ nonce }))
  await assertPaid(await makePayment({ nonce }))
})

test('a cancelled authorization counts as used and emits a log, through either overload', async () => {
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

test('only the payee can use a receive authorization, and nobody can use it as a transfer authorization', async () => {
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

test('a blacklisted payer or payee is refused until it is removed from the blacklist', async () => {
  for (const party of ['from', 'to'] as const) {
    const payment = await makePayment()
    const account = payment.authorization[party]
    await callWith('blacklist', account)
    await assertRefused(payment, 'Blacklistable: account is blacklisted')
    await callWith('unBlacklist', account)
    await assertPaid(payment)
  }
})

test('money cannot be sent to the token itself, by authorization or by transfer', async () => {
  const payment = await makePayment({ to: chain.token })
  await assertRefused(payment, 'Blacklistable: account is blacklisted')
  const transfer = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [chain.token, 0n] })
  assert.equal(await refusal(transfer), 'Blacklistable: account is blacklisted')
})

test('a paused token refuses payments and cancellations until it is unpaused', async () => {
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

test('a payer cannot pay more than it has, and the nonce stays unused', async () => {
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

test('an authorization for zero can be settled', async () => {
  const payment = await makePayment({ value: 0n })
  await assertPaid(payment)
  assert.equal((await chain.transferLogs({ to: payment.to })).length, 1)
})

test('either overload ignores a marker after the arguments', async () => {
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

test('if someone else settles from inside a contract, our transaction reverts and the money arrives once', async () => {
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

test('aggregate3 lets calls with allowFailure fail, returns their reason, and pays the others', async () => {
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

test('Multicall3 returns the block number, its timestamp and a balance', async () => {
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
