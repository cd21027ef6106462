import assert from 'node:assert/strict'
import {
  type Address,
  BaseError,
  encodeFunctionData,
  type Hex,
  parseSignature,
  type TransactionReceipt,
} from 'viem'
import { tokenAbi } from '../../../support/chain/evm.ts'
import {
  authorizationArguments,
  encodeTransfer,
  newPayer,
  type Payer,
  type Signed,
  signAuthorization,
} from '../../../support/chain/evm-payment.ts'
import { openChain } from '../../../support/chain/open.ts'

/** The token on its own chain, with the helpers that its tests use. */
export async function openToken() {
  const chain = await openChain()

  /** A payer with 100 units who has signed an authorization for 40 of them; a test may change any part of it. */
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

  /** The token's revert reason for a call against the newest block; null if it does not revert. */
  async function refusal(data: Hex, to: Address = chain.token): Promise<string | null> {
    try {
      await chain.client.call({ to, data, gas: 1_000_000n })
      return null
    } catch (error) {
      assert(error instanceof BaseError)
      return error.details.replace(/^(?:execution reverted: |reverted with reason string ')(.*?)'?$/, '$1')
    }
  }

  /** The call and the mined transaction both revert, and no money moves. */
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

  return { chain, makePayment, settle, refusal, assertRefused, assertPaid, call, callWith }
}

/** Encodes the call for the overload that takes v, r and s. */
export function encodeSplitTransfer({ authorization, signature }: Signed): Hex {
  const { r, s, v } = parseSignature(signature)
  return encodeFunctionData({
    abi: tokenAbi,
    functionName: 'transferWithAuthorization',
    args: [...authorizationArguments(authorization), Number(v), r, s],
  })
}
