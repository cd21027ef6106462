import { type Address, encodeFunctionData, type Hex, parseGwei } from 'viem'
import { type TestChain, tokenAbi } from '../../support/chain/evm.ts'
import type { Authorized } from './deployment.ts'
import { until } from './processes.ts'

/** Stops the making of blocks. What is sent from now on stays in the pool. */
export async function halt(chain: TestChain): Promise<void> {
  await chain.client.setIntervalMining({ interval: 0 })
}

/** A block a second again. */
export async function resume(chain: TestChain): Promise<void> {
  await chain.client.setIntervalMining({ interval: 1 })
}

/** Makes the next block this much dearer than anything that was signed before. */
export async function raiseBaseFee(chain: TestChain, gwei: number): Promise<void> {
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(`${gwei}`) })
}

/** The next block is as late as this authorization is good for: it can never be paid again. */
export async function jumpPast(chain: TestChain, { validBefore }: Authorized): Promise<void> {
  await chain.setNextBlockTimestamp(BigInt(validBefore))
  await chain.mine()
}

/** Replaces the blocks from this one on by empty ones. */
export async function reorgFrom(chain: TestChain, blockNumber: bigint): Promise<number> {
  const depth = Number((await chain.client.getBlockNumber()) - blockNumber) + 1
  await chain.reorg(depth)
  return depth
}

export async function untilPooled(chain: TestChain, account: Address): Promise<Hex> {
  return await until(`a transaction of ${account} waits`, async () => {
    const { pending } = await chain.client.getTxpoolContent()
    const [own] = Object.entries(pending).filter(([from]) => from.toLowerCase() === account.toLowerCase())
    return Object.values(own?.[1] ?? {})[0]?.hash
  })
}

/** From now on the token refuses everything from this account, or no longer does. */
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
