import assert from 'node:assert/strict'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { keccak256, serializeTransaction } from 'viem/utils'
import type { EvmNetwork } from '../../networks.ts'
import type { Hex } from '../hex.ts'
import { batcher, deployData, deployer } from './batcher.ts'
import type { Chain } from './chain.ts'
import { multicall } from './multicall.ts'
import { signDigest } from './recover.ts'

/** A settler's key. It pays gas and cannot redirect money: the signed transfers fix recipient and amount. */
export type Signer = {
  readonly family: 'EVM'
  readonly address: Hex
  readonly sign: (chain: Chain, transaction: Unsigned) => SignedTransaction
}

export type Unsigned = {
  readonly to: string
  readonly data: Hex
  readonly nonce: number
  readonly gas: bigint
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

type SignedTransaction = { readonly hash: Hex; readonly bytes: Hex }

/** No batch of ours needs more; a larger one is a bug that would burn the settler's balance. */
const gasMax = 30_000_000n

/**
 * The most that an empty transaction may pay for freeing a nonce, which everything behind it waits for: ten times what a
 * payment may pay, for 21,000 gas.
 */
export function fillFeeMax(network: EvmNetwork): bigint {
  return network.maxFeePerGas * 10n
}

/** A new key, as SETTLER_KEYS_FILE holds it. */
export function makeKey(): string {
  return generatePrivateKey()
}

export function openSigner(privateKey: Hex): Signer {
  const address = privateKeyToAccount(privateKey).address.toLowerCase() as Hex
  const secret = Buffer.from(privateKey.slice(2), 'hex')
  return {
    family: 'EVM',
    address,
    sign(chain, transaction) {
      assertAllowed(chain, address, transaction)
      const unsigned = {
        ...transaction,
        to: transaction.to as Hex,
        chainId: chain.chainId,
        type: 'eip1559',
        value: 0n,
      } as const
      const { r, s, yParity } = signDigest(
        Buffer.from(keccak256(serializeTransaction(unsigned)).slice(2), 'hex'),
        secret,
      )
      const bytes = serializeTransaction(unsigned, { r, s, yParity })
      return { hash: keccak256(bytes), bytes }
    },
  }
}

/**
 * All that a settler may ever sign: calls without value to our tokens, the batcher and Multicall3, the deployment of the
 * batcher, or an empty transaction to itself.
 */
function assertAllowed(chain: Chain, self: string, { to, data, gas, maxFeePerGas }: Unsigned): void {
  const targets = [batcher, multicall, ...chain.network.assets.map(({ address }) => address.toLowerCase())]
  const isFill = to === self && data === '0x'
  const isDeployment = to === deployer && data === deployData
  assert(isFill || isDeployment || targets.includes(to.toLowerCase()), `a settler must not call ${to}`)
  assert(gas <= gasMax, `gas ${gas} is above the cap`)
  const feeMax = isFill ? fillFeeMax(chain.network) : chain.network.maxFeePerGas
  assert(maxFeePerGas <= feeMax, `fee ${maxFeePerGas} is above the cap`)
}
