import type { Context } from '../../context.ts'
import type { Chain } from './chain.ts'
import { noteLies } from './disputes.ts'
import { type BlockVerdict, judge, readAccounts, type WantedBlock } from './witnesses.ts'

/** Blocks per request, at most and at first, and the number of logs that a request should not exceed. */
const blocksPerRead = 20
const blocksPerFirstRead = 5
const logsPerRead = 10_000

/**
 * Reads blocks from every provider, decides what to believe of each, and stops asking those that were caught lying for
 * a while.
 */
export async function readVerdicts(
  ctx: Context,
  chain: Chain,
  wanted: readonly WantedBlock[],
  isHasty: boolean,
): Promise<BlockVerdict[]> {
  if (wanted.length === 0) return []
  // If no provider can answer in time, the next read asks for less.
  paces.set(chain, Math.ceil(wanted.length / 2))
  const accounts = await readAccounts(chain, wanted, isHasty)
  const verdicts = accounts.map((one) => judge(one, chain.network.witnessesMin))
  const logs = verdicts.reduce((sum, one) => sum + (one.kind === 'believed' ? one.logs.length : 0), 0)
  const logsPerBlock = Math.max(1, logs / Math.max(1, verdicts.length))
  paces.set(chain, Math.min(blocksPerRead, Math.max(1, Math.floor(logsPerRead / logsPerBlock))))
  const lies = verdicts.flatMap((verdict) => verdict.lies)
  await noteLies(ctx, chain, lies)
  return verdicts
}

/** How many blocks of each chain this process reads at a time, adapted to how many logs the last ones had. */
const paces = new WeakMap<Chain, number>()

export function paceOf(chain: Chain): number {
  return paces.get(chain) ?? blocksPerFirstRead
}
