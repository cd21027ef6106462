import { type Address, encodeFunctionData, type Hex, parseGwei } from 'viem'
import { type TestChain, tokenAbi } from '../../support/chain/evm.ts'
import type { Authorized } from './deployment.ts'
import { until } from './processes.ts'

/** Stops mining. Transactions sent from now on stay in the pool. */
export async function halt(chain: TestChain): Promise<void> {
  await chain.client.setIntervalMining({ interval: 0 })
}

/** Mines one block per second again. */
export async function resume(chain: TestChain): Promise<void> {
  await chain.client.setIntervalMining({ interval: 1 })
}

/** Sets the next block's base fee, above anything that was signed before. */
export async function raiseBaseFee(chain: TestChain, gwei: number): Promise<void> {
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(`${gwei}`) })
}

/** Mines a block at this authorization's validBefore, after which it can never pay. */
export async function jumpPast(chain: TestChain, { validBefore }: Authorized): Promise<void> {
  await chain.setNextBlockTimestamp(BigInt(validBefore))
  await chain.mine()
}

/** Replaces the blocks from this one on with empty ones. */
export async function reorgFrom(chain: TestChain, blockNumber: bigint): Promise<number> {
  const depth = Number((await chain.client.getBlockNumber()) - blockNumber) + 1
  await chain.reorg(depth)
  return depth
}

export async function untilPooled(chain: TestChain, account: Address): Promise<Hex> {
  return await until(`a transaction of ${account} is pending`, async () => {
    const { pending } = await chain.client.getTxpoolContent()
    const [own] = Object.entries(pending).filter(([from]) => from.toLowerCase() === account.toLowerCase())
    return Object.values(own?.[1] ?? {})[0]?.hash
  })
}

/** Makes the token refuse everything from this account from now on, or accept it again. */
export async function blacklist(chain: TestChain, account: Address, isListed: boolean): Promise<void> {
  await chain.perform({
    to: chain.token,
    data: encodeFunctionData({
      abi: tokenAbi,
      functionName: isListed ? 'blacklist' : 'unBlacklist',
      args: [account],
    }),
  })
}
