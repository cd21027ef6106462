import { type Follower, readFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import { leaseSettler, noteBalance, type Settler } from './rows.ts'

/** Longer than any step takes; a process that died is replaced after this. */
const leaseSeconds = 10

type Entered = { readonly settler: Settler; readonly follower: Follower & { readonly headTime: Date } }

/**
 * How a step of every lane begins: hold the settler's row, know where the chain stands, and refresh the balance that
 * readiness is judged by. 'held' if another process has the settler. 'blind' if nobody follows the chain: then nobody
 * would see what became of a transaction, so nothing is sent.
 */
export async function enterLane(
  ctx: Context,
  {
    network,
    address,
    holder,
  }: { readonly network: string; readonly address: string; readonly holder: string },
  readBalance: () => Promise<bigint>,
): Promise<Entered | 'held' | 'blind'> {
  const settler = await leaseSettler(ctx.db, network, address, holder, leaseSeconds)
  if (!settler) return 'held'
  const follower = await readFollower(ctx.db, network)
  if (!follower?.headTime) return 'blind'
  if (settler.isBalanceOld) await noteBalance(ctx.db, network, address, await readBalance())
  return { settler, follower: { ...follower, headTime: follower.headTime } }
}
