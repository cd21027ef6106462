import { writeFile } from 'node:fs/promises'
import type { Network } from '../../networks.ts'
import { describeVersion } from '../../version.ts'
import { UsageError } from '../usage.ts'

/** Thrown by a step that can't continue: its finding, and a sentence that says what to do. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed'
  readonly fix: string

  constructor(says: string, fix: string) {
    super(says)
    this.fix = fix
  }
}

/** NOTE: nothing is wrong with the deployment, but somebody should know this. */
type Mark = 'ok' | 'WRONG' | 'NOTE'
type Line = { readonly at: Date; readonly mark: Mark; readonly what: string; readonly says: string }

export type Report = ReturnType<typeof openReport>

/** The findings of a rehearsal: printed as it runs, and kept in a file that is complete after every line. */
export function openReport(
  network: Network,
  file: string | null,
  { say, now }: { readonly say: (text: string) => void; readonly now: () => Date },
) {
  const begunAt = now()
  const lines: Line[] = []
  const times: (readonly [what: string, ms: number])[] = []
  let outcome = 'not finished'

  const write = async () => {
    if (file === null) return
    await writeFile(file, draw()).catch((error: NodeJS.ErrnoException) => {
      throw new UsageError(`${file} cannot be written: ${error.message}. Name another with --report FILE.`)
    })
  }
  const add = async (mark: Mark, what: string, says: string, fix: string | null) => {
    const told = fix === null ? says : `${says}\n${fix}`
    say(`${mark.padEnd(7)}${what}: ${told.replaceAll('\n', '\n       ')}`)
    lines.push({ at: now(), mark, what, says: told })
    await write()
  }
  const draw = () =>
    [
      `# Rehearsal on ${network.name}`,
      '',
      `- **Network:** ${network.id}, ${network.caip2}`,
      `- **Begun:** ${begunAt.toISOString()}`,
      `- **Took:** ${toSeconds((lines.at(-1)?.at ?? begunAt).getTime() - begunAt.getTime())} s until the last line`,
      `- **Version:** ${describeVersion()}`,
      `- **Outcome:** ${outcome}`,
      '',
      '| Time (UTC) | Outcome | Step | Found |',
      '|---|---|---|---|',
      ...lines.map(
        ({ at, mark, what, says }) =>
          `| ${at.toISOString().slice(11, 19)} | ${mark} | ${toCell(what)} | ${toCell(says)} |`,
      ),
      ...(times.length === 0 ? [] : ['', '| Until | Seconds |', '|---|---|']),
      ...times.map(([what, ms]) => `| ${what} | ${toSeconds(ms)} |`),
      '',
    ].join('\n')

  return {
    write,
    say,
    ok: async (what: string, says: string) => await add('ok', what, says, null),
    note: async (what: string, says: string, fix: string) => await add('NOTE', what, says, fix),
    wrong: async (what: string, says: string, fix: string) => await add('WRONG', what, says, fix),
    /** Records how long something took. */
    time(what: string, ms: number): string {
      times.push([what, ms])
      return `${toSeconds(ms)} s`
    },
    async end(says: string) {
      outcome = says
      say(`\n${says}`)
      await write()
    },
  }
}

function toCell(text: string): string {
  return text.replaceAll('\n', '<br>').replaceAll('|', '\\|')
}

/** With one decimal. The compared clocks may differ a little, but no duration is negative. */
function toSeconds(ms: number): string {
  const tenths = Math.round(Math.max(0, ms) / 100)
  return `${Math.floor(tenths / 10)}.${tenths % 10}`
}
