import { quietMinutes } from './directory.ts'
import type { Cell } from './rows.ts'

/** Which cell a new store goes to, or why none can be named. */
export type Placement = { readonly cell: Cell } | { readonly refusal: string }

/**
 * A member and their stores live in one cell, and so does a wallet, so those decide. Otherwise the least loaded cell that
 * takes stores and runs. `owners` are the cells of the store's member and wallets that have one.
 */
export function placeStore(cells: readonly Cell[], owners: readonly string[], now: Date): Placement {
  const [tag, another] = [...new Set(owners)]
  if (another !== undefined)
    return {
      refusal: `The member and the wallets are in different cells (${[...new Set(owners)].join(', ')}). A store, its owners and its wallets are in one cell: use another wallet, or invite the person there as a new member.`,
    }
  if (tag !== undefined) {
    const cell = cells.find((each) => each.tag === tag)
    return cell ? { cell } : { refusal: `The directory knows no cell ${tag}. Run: directory list` }
  }
  const runsSince = new Date(now.getTime() - quietMinutes * 60_000)
  const [least] = cells
    .filter(({ takesStores, isAsserted, adoptedAt }) => takesStores && isAsserted && adoptedAt !== null)
    .filter(({ seenAt }) => seenAt !== null && seenAt >= runsSince)
    .sort((a, b) => a.paymentsPerHour - b.paymentsPerHour || a.stores - b.stores || (a.tag < b.tag ? -1 : 1))
  return least
    ? { cell: least }
    : {
        refusal: `No cell takes new stores: each is drained, or its work has not reported for ${quietMinutes} minutes. Run: directory list, then start work, or directory resume CELL, or add a cell.`,
      }
}
