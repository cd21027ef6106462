import { styleText } from 'node:util'

/** Every command writes its output through this, for people or for programs. */
export type Terminal = ReturnType<typeof openTerminal>

type Style = Parameters<typeof styleText>[0]

/** One column of a table. On a narrow terminal the last column is cut. */
export type Column<Item> = {
  readonly title: string
  readonly cell: (item: Item) => string
  readonly style?: (item: Item) => Style
}

type Fact = readonly [name: string, value: string, style?: Style]

const spinnerEveryMs = 80
const frames = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const columnsDefault = 80
const lastWidthMin = 8

/** People get text and colours; programs get one line of JSON per object and nothing else. */
export function openTerminal(isText: boolean) {
  const { stdout, stderr } = process
  const width = stdout.columns ?? columnsDefault

  return {
    isText,
    isInteractive: isText && process.stdin.isTTY === true && stdout.isTTY === true,

    /** Prints an object: `lines` for people, the value itself as JSON for programs. */
    show(value: unknown, lines: () => readonly string[]): void {
      stdout.write(isText ? `${lines().join('\n')}\n` : `${JSON.stringify(value)}\n`)
    },

    /** Printed for people only. */
    say(text: string): void {
      if (isText) stdout.write(`${text}\n`)
    },

    /** Names and values, one pair per line. */
    facts(facts: readonly Fact[]): string[] {
      const widest = Math.max(...facts.map(([name]) => name.length))
      return facts.map(
        ([name, value, style = 'reset']) =>
          `  ${paint('dim', name.padEnd(widest))}  ${paint(style, plain(value))}`,
      )
    },

    /** Prints a list: a table for people, one line of JSON per item for programs. */
    showAll<Item>(items: readonly Item[], none: string, columns: readonly Column<Item>[]): void {
      if (!isText) for (const item of items) stdout.write(`${JSON.stringify(item)}\n`)
      else stdout.write(`${items.length === 0 ? none : tableOf(items, columns, width).join('\n')}\n`)
    },

    /** Something to know while a command goes on. On stderr, so that the output stays what the command returns. */
    notice(notice: { readonly code: string | null; readonly detail: string }): void {
      const clear = isText && stderr.isTTY ? '\r\x1b[2K' : ''
      const text = isText
        ? `${paint('yellow', '…')} ${wrap(notice.detail)}`
        : JSON.stringify({ waiting: notice })
      stderr.write(`${clear}${text}\n`)
    },

    /** A bar on stderr while output goes to a file; nothing unless stderr is a terminal. */
    progress(total: number) {
      if (!stderr.isTTY) return { show: () => {}, end: () => {} }
      let shown = -1
      return {
        show(done: number): void {
          const percent = total === 0 ? 100 : Math.min(100, Math.floor((done * 100) / total))
          if (percent === shown) return
          shown = percent
          const bar = '█'.repeat(Math.floor(percent / 5)).padEnd(20, '░')
          stderr.write(`\r\x1b[2K${bar} ${percent}% of ${total}`)
        },
        end(): void {
          stderr.write('\r\x1b[2K')
        },
      }
    },

    /** Shows a spinner until the returned function is called. */
    busy(text: string): () => void {
      if (!isText || !stderr.isTTY) return () => {}
      let frame = 0
      const draw = () =>
        stderr.write(`\r\x1b[2K${paint('cyan', frames[frame++ % frames.length] ?? '')} ${text}`)
      draw()
      const timer = setInterval(draw, spinnerEveryMs)
      return () => {
        clearInterval(timer)
        stderr.write('\r\x1b[2K')
      }
    },
  }
}

function tableOf<Item>(items: readonly Item[], columns: readonly Column<Item>[], width: number): string[] {
  const widths = columns.map(({ title, cell }) =>
    Math.max(title.length, ...items.map((item) => cell(item).length)),
  )
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + 2, 0)
  widths.splice(-1, 1, Math.max(lastWidthMin, Math.min(widths.at(-1) ?? 0, width - before)))
  const join = (cells: readonly string[]) => cells.join('  ').trimEnd()
  return [
    join(columns.map(({ title }, i) => paint('dim', fit(title, widths[i] ?? 0)))),
    ...items.map((item) =>
      join(
        columns.map(({ cell, style }, i) => paint(style?.(item) ?? 'reset', fit(cell(item), widths[i] ?? 0))),
      ),
    ),
  ]
}

/** Adds colour if the output is a terminal that supports it and NO_COLOR is not set. */
export function paint(style: Style, text: string): string {
  return style === 'reset' ? text : styleText(style, text, { stream: process.stdout })
}

export const good = (text: string) => `${paint('green', '✔')} ${text}`
export const bad = (text: string) => `${paint('red', '✖')} ${text}`

/** Breaks lines between words; every line after the first is indented by two spaces. */
export function wrap(text: string): string {
  const width = (process.stdout.columns ?? columnsDefault) - 2
  const lines = ['']
  for (const word of plain(text).split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line === '') lines.splice(-1, 1, word)
    else if (line.length + 1 + word.length <= width) lines.splice(-1, 1, `${line} ${word}`)
    else lines.push(word)
  }
  return lines.join('\n  ')
}

/** "2026-11-15 12:00:00" in this machine's time zone, so that people need not convert it. */
export function timeOf(iso: string): string {
  const time = new Date(iso)
  const two = (part: number) => String(part).padStart(2, '0')
  const date = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-')
  return `${date} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`
}

function fit(cell: string, width: number): string {
  const text = plain(cell)
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width)
}

/** Text from strangers must not move the cursor, change colours or reverse the line: people decide by what they see. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '�')
}

/** The same for a text of several lines. */
export function plainLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => plain(line.replaceAll('\t', '  ')))
}
