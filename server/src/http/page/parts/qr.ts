import { encode } from 'uqr'
import { type Html, html } from '../html.ts'

/** White modules around the code, which scanners need even on dark pages. */
const quietModules = 3

/** A QR code as one SVG path, drawn by the server: nothing to load or run. */
export function renderQr(text: string, label: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: quietModules })
  const path = data
    .map((row, y) =>
      readRuns(row)
        .map(([x, length]) => `M${x} ${y}h${length}v1h-${length}z`)
        .join(''),
    )
    .join('')
  const box = html`viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"`
  const white = html`<path fill="#fff" d="M0 0h${size}v${size}H0z"/>`
  return html`<svg class="qr" role="img" aria-label="${label}" ${box}>${white}<path d="${path}"/></svg>`
}

/** The start and length of each black run in a row. */
function readRuns(row: readonly boolean[]): [start: number, length: number][] {
  const runs: [number, number][] = []
  for (const [x, isBlack] of row.entries()) {
    const last = runs.at(-1)
    if (!isBlack) continue
    if (last && last[0] + last[1] === x) last[1]++
    else runs.push([x, 1])
  }
  return runs
}
