import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcAnswerError } from '../rpc.ts'
import { isRevert, isUnfunded } from './refusals.ts'

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
  assert.equal(isUnfunded(error(-32000, "Sender doesn't have enough funds to send tx")), true)
})
