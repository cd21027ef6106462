import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { placeStore } from './place.ts'
import type { Cell } from './rows.ts'

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
