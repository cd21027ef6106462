import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { quietMinutes } from '../directory/directory.ts'
import type { Cell } from '../directory/rows.ts'

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
    .filter(({ takesStores, isAdopted }) => takesStores && isAdopted)
    .filter(({ seenAt }) => seenAt !== null && seenAt >= runsSince)
    .sort((a, b) => a.paymentsPerHour - b.paymentsPerHour || a.stores - b.stores || (a.tag < b.tag ? -1 : 1))
  return least
    ? { cell: least }
    : {
        refusal: `No cell takes new stores: each is drained, or its work has not reported for ${quietMinutes} minutes. Run: directory list, then start work, or directory resume CELL, or add a cell.`,
      }
}

/** The proxy's maps (ops/haproxy/haproxy.cfg): what leads where, one line for each entry. */
export function drawMaps(cells: readonly Cell[], now: Date): Readonly<Record<string, string>> {
  const consoles = cells.filter(({ consoleUrl }) => consoleUrl !== '')
  const placement = placeStore(consoles, [], now)
  return {
    'cells.map': cells.map(({ tag }) => `${tag} cell_${tag}\n`).join(''),
    'consoles.map': consoles
      .map(({ tag, consoleUrl }) => `${new URL(consoleUrl).hostname} console_${tag}\n`)
      .join(''),
    'placement.map': 'cell' in placement ? `new ${placement.cell.consoleUrl}\n` : '',
  }
}

/** Writes each file beside its place and moves it there, so that the proxy never reads half of one. */
export async function writeMaps(folder: string, maps: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(maps)) {
    const path = join(folder, name)
    const file = await open(`${path}.next`, 'w', 0o644)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.next`, path)
  }
}
