import { type Address, type Hex, toHex } from 'viem'
import type { TestChain } from '../../../../support/chain/evm.ts'
import { newPayer } from '../../../../support/chain/evm-payment.ts'

/**
 * Places an ERC-1271 wallet on the chain that accepts any signature while at least `gasMin` gas is left, and burns all
 * its gas otherwise.
 */
export async function placeGasAwareWallet({ client }: TestChain, gasMin: number): Promise<Address> {
  const { address } = newPayer()
  await client.setCode({ address, bytecode: gasAwareCode(gasMin) })
  return address
}

function gasAwareCode(gasMin: number): Hex {
  const operations = [
    `63${toHex(gasMin, { size: 4 }).slice(2)}`, // PUSH4 gasMin
    '5a10601857', // GAS LT PUSH1 24 JUMPI
    '631626ba7e60e01b', // PUSH4 isValidSignature.selector PUSH1 224 SHL
    '5f5260205ff3', // PUSH0 MSTORE PUSH1 32 PUSH0 RETURN
    '5bfe', // JUMPDEST INVALID, at byte 24
  ]
  return `0x${operations.join('')}`
}
