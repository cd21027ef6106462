import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcAnswerError } from '../rpc.ts'
import { isHeld, isRevert, isUnfunded, readRevert } from './refusals.ts'

const error = (code: number, message: string, data?: unknown) => new RpcAnswerError(code, message, data)

test('code that failed has answered, in the words of every client', () => {
  for (const one of [
    error(3, 'execution reverted: ERC20: transfer amount exceeds balance', '0x08c379a0'),
    error(3, 'anything at all'),
    error(-32000, 'execution reverted'),
    error(-32000, 'out of gas'),
    error(-32000, 'invalid opcode: INVALID'),
    error(-32000, 'invalid jump destination'),
    error(-32003, 'out of gas: gas exhausted during memory expansion: 200000'),
    error(-32603, 'EVM error: InvalidFEOpcode'),
    error(-32603, 'VM Exception while processing transaction: reverted with reason string "rate limit"'),
    error(-32603, 'Transaction reverted without a reason string'),
    error(-32015, 'VM execution error.', 'Reverted 0x08c379a0'),
    error(-32000, 'Reverted 0x08c379a0'),
    error(-32000, 'Execution reverted'),
    error(-32000, 'VM Exception while processing transaction: revert'),
    error(-32603, 'internal', `0x08c379a0${'00'.repeat(32)}`),
  ])
    assert.equal(isRevert(one), true, one.message)
})

test('a node that could not tell has not answered', () => {
  for (const one of [
    error(-32000, 'header not found'),
    error(-32000, 'missing trie node 1f (path ) state 0x2a is not available'),
    error(-32603, 'upstream timed out'),
    error(-32603, 'internal error', `0x${'2a'.repeat(32)}`),
    error(-32601, 'the method eth_call does not exist', { see: 'https://provider.example' }),
    error(-32000, 'gas limit is too high (cap 25000000)'),
    error(-32000, 'the upstream node was reverted to an earlier snapshot'),
    error(-32603, 'Reverted to the backup node, try again'),
    error(-32000, 'cannot revert to snapshot 12'),
    error(0, 'unknown error'),
  ])
    assert.equal(isRevert(one), false, one.message)
})

test('EDR says in its own words that the sender cannot pay', () => {
  const words =
    "Sender doesn't have enough funds to send tx. The max upfront cost is: 210000000000000 and the sender's balance is: 0."
  assert.equal(isUnfunded(error(-32000, words, null)), true)
  assert.equal(isRevert(error(-32000, words, null)), false)
})

test('EDR says in its own words that it has a transaction, or that its place is taken', () => {
  for (const words of [
    'Known transaction: 0x48e3cef6acd5f22a383f01ac67c926c57de6a635c17992224979ee91f0d80271',
    'Replacement transaction underpriced. A gasPrice/maxFeePerGas of at least 11000000000 is necessary to replace the existing transaction with nonce 0.',
    'Transaction nonce too low. Expected nonce to be at least 1 but got 0.',
  ])
    assert.equal(isHeld(error(-32000, words, null)), true, words)
})

test('what a contract says about funds is its own refusal, whichever code the client gives it', () => {
  for (const one of [
    error(3, 'execution reverted: insufficient funds', '0x'),
    error(-32000, 'execution reverted: insufficient funds'),
    error(-32000, "reverted with reason string 'insufficient funds'"),
    error(-32603, 'insufficient funds', { data: `0x08c379a0${'00'.repeat(32)}` }),
  ]) {
    assert.equal(isUnfunded(one), false, one.message)
    assert.equal(isRevert(one), true, one.message)
  }
})

test('what failing code has returned is read from a text and from EDR’s object, and nowhere else', () => {
  const returned = `0x08c379a0${'00'.repeat(32)}`
  assert.equal(readRevert(error(3, 'execution reverted', returned)), returned)
  const edr = { reason: { Revert: returned }, data: returned, transactionHash: null }
  assert.equal(readRevert(error(-32000, "reverted with reason string ''", edr)), returned)
  for (const data of [undefined, null, 7, {}, { data: 7 }, [returned]])
    assert.equal(readRevert(error(-32000, 'execution reverted', data)), '0x')
})
