import { type Follower, readFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import { type Leased, leaseSettler, noteBalance } from './rows.ts'

/** Longer than any step takes. After this time another process takes over from one that died. */
const leaseSeconds = 10

type Entered = { readonly settler: Leased; readonly follower: Follower & { readonly headTime: Date } }

/**
 * How every lane's step begins: lease the settler's row, read how far the chain was followed, and refresh the balance
 * and data fee that readiness depends on. Returns 'held' if another process has the settler, and 'blind' if nobody
 * follows the chain: then nobody would see the outcome of a transaction, so nothing is sent.
 */
export async function enterLane(
  ctx: Context,
  {
    network,
    address,
    holder,
  }: { readonly network: string; readonly address: string; readonly holder: string },
  readBalance: () => Promise<bigint>,
  readDataFee: () => Promise<bigint> = async () => 0n,
): Promise<Entered | 'held' | 'blind'> {
  const settler = await leaseSettler(ctx.db, network, address, holder, leaseSeconds)
  if (!settler) return 'held'
  const follower = await readFollower(ctx.db, network)
  if (!follower?.headTime) return 'blind'
  const entered = { ...follower, headTime: follower.headTime }
  if (!settler.isBalanceOld) return { settler, follower: entered }
  const [balance, dataFee] = await Promise.all([readBalance(), readDataFee()])
  await noteBalance(ctx.db, network, address, { balance, dataFee })
  return { settler: { ...settler, balanceWei: balance, dataFeeWei: dataFee }, follower: entered }
}
