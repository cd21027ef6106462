import { scaleBand, scaleLinear } from 'd3-scale'
import type { Takings } from '../../../checkouts/rollups/takings.ts'
import { toSafeNumber } from '../../../safe-number.ts'
import { type Html, html } from '../../page/html.ts'

/** In the SVG's own units, which are pixels. Days are laid out in percent, so that it fits every width. */
const height = 200
const labelHeight = 20
const gapOfDays = 0.34
const barRadius = 3
const ticksWanted = 4
/** Up to this many bars, each has a label, or on a phone every other one. With more, only every fifth has one. */
const labelsMax = 16

export type ChartTexts = {
  readonly about: Html
  /** An amount beside a line, as short as it can be: "$1.2K". */
  axis(amount: number): string
  label(day: string): string
  hover(day: string, to: string, amount: bigint): string
}

/** Takings as bars; that of today, which is not over, is paler. The short line across a bar shows the takings of the same days in the period before. */
export function renderChart(days: Takings['days'], today: string, texts: ChartTexts): Html {
  const values = days.flatMap(({ amount, before }) => [amount ?? 0n, before ?? 0n]).map(toNumber)
  // An empty chart still has a scale, or its lines would have no place.
  const y = scaleLinear([0, Math.max(...values, 1)], [height, 0]).nice(ticksWanted)
  const x = scaleBand(
    days.map(({ day }) => day),
    [0, 100],
  )
    .paddingInner(gapOfDays)
    .paddingOuter(gapOfDays / 2)
  const isCrowded = days.length > labelsMax
  const width = percent(x.bandwidth())
  const line = (tick: number) =>
    html`<line x1="0" x2="100%" y1="${round(y(tick))}" y2="${round(y(tick))}"/><text x="-8" y="${round(
      y(tick) + 4,
    )}" text-anchor="end">${texts.axis(tick)}</text>`
  return html`<div class="chart"><svg role="img" aria-label="${texts.about}">${y.ticks(ticksWanted).map(line)}
${days.map(({ day, to: until, amount, before }, i) => {
  const left = x(day) ?? 0
  const top = y(toNumber(amount ?? 0n))
  const isOver = until < today || day > today
  const then = before === null ? null : round(y(toNumber(before)))
  const isShown = !isCrowded || i % 5 === 0
  const label = isShown
    ? html`<text${!isCrowded && i % 2 === 1 && html` class="odd"`} x="${percent(left + x.bandwidth() / 2)}" y="${
        height + labelHeight
      }" text-anchor="middle">${texts.label(day)}</text>`
    : null
  const bar =
    amount !== null &&
    amount > 0n &&
    html`<rect class="${isOver ? 'bar' : 'bar now'}" x="${percent(left)}" y="${round(top)}" width="${
      width
    }" height="${round(height - top)}" rx="${barRadius}"><title>${texts.hover(day, until, amount)}</title></rect>`
  return html`${bar}${
    then !== null &&
    html`<line class="then" x1="${percent(left)}" x2="${percent(left + x.bandwidth())}" y1="${then}" y2="${then}"/>`
  }${label}`
})}</svg></div>`
}

/** Whole units and cents of a currency, which is all that a bar can show. */
export function toNumber(millionths: bigint): number {
  return toSafeNumber(millionths / 10_000n) / 100
}

function percent(share: number): string {
  return `${round(share)}%`
}

function round(value: number): string {
  return `${Math.round(value * 100) / 100}`
}
