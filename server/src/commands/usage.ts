import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { type Command, commands } from './table.ts'

/** Checks the command line of `farthing-admin` against the table of commands, and makes the help from it. */
export type Options = Readonly<Record<string, string | boolean | undefined>>

/** Thrown for a wrong command line; the message says what is wrong. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export type Typed =
  | { readonly help: string }
  | { readonly command: Command; readonly subjects: readonly string[]; readonly options: Options }

const lead =
  'Farthing is a self-hosted crypto checkout: a store gets paid in USDC, straight into its own wallet.'
const nameColumns = 29
const textColumns = 110

export function parseCommand(args: readonly string[]): Typed {
  const wantsHelp = args.some((arg) => arg === '--help' || arg === '-h')
  const firstOption = args.findIndex((arg) => arg.startsWith('-'))
  const words = firstOption === -1 ? args : args.slice(0, firstOption)
  const command = find(words.slice(0, 2).join(' ')) ?? find(words[0] ?? '')
  if (command && wantsHelp) return { help: describeCommand(command) }
  if (command) return { command, ...parseRest(command, args) }
  const group = commands.filter((each) => each.words.startsWith(`${words[0]} `) && !each.isInternal)
  if (group.length > 0 && wantsHelp) return { help: describeAll(group) }
  if (words.length === 0 || words[0] === 'help') return { help: describeAll(commands) }
  const typed = words.slice(0, 2).join(' ')
  if (group.length > 0) {
    const all = group.map((each) => each.words).join(', ')
    throw new UsageError(
      `Unknown command: ${typed}. There are ${all}. What each does: farthing-admin ${words[0]} --help`,
    )
  }
  throw new UsageError(`Unknown command: ${words[0]}. For the list of commands: farthing-admin --help`)
}

function find(words: string): Command | undefined {
  return commands.find((command) => command.words === words)
}

function parseRest(
  command: Command,
  args: readonly string[],
): { readonly subjects: readonly string[]; readonly options: Options } {
  const known: ParseArgsOptionsConfig = Object.fromEntries(
    Object.keys(command.options ?? {}).map((option) => {
      const [name = '', value] = option.slice(2).split(' ')
      return [name, { type: value === undefined ? 'boolean' : 'string' }]
    }),
  )
  const parsed = tryParse(args, known)
  const hint = `Usage: farthing-admin ${typeOf(command)}`
  if (typeof parsed === 'string') throw new UsageError(`${parsed}. ${hint}`)
  const subjects = parsed.positionals.slice(command.words.split(' ').length)
  const wanted = command.subjects?.split(' ') ?? []
  const missing = wanted[subjects.length]
  if (missing !== undefined && !missing.startsWith('['))
    throw new UsageError(`${missing} is missing. ${hint}`)
  if (subjects.length > wanted.length)
    throw new UsageError(`${subjects[wanted.length]} is one word too many. ${hint}`)
  return { subjects, options: parsed.values as Options }
}

/** The values of the options, or a sentence that says what is wrong with them. */
function tryParse(args: readonly string[], options: ParseArgsOptionsConfig) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error
    if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION')
      return `There is no option ${/'(-[^']*)'/.exec(error.message)?.[1] ?? ''} here`
    if (String(error.code).startsWith('ERR_PARSE_ARGS')) return error.message.replace(/\.$/, '')
    throw error
  }
}

/** The whole line, with what may be left out in brackets. */
function typeOf({ words, subjects, options = {} }: Command): string {
  const all = Object.entries(options).map(([option, about]) =>
    about.endsWith('; required') ? option : `[${option}]`,
  )
  return [words, ...(subjects ? [subjects] : []), ...all].join(' ')
}

function describeCommand(command: Command): string {
  const options = Object.entries(command.options ?? {}).map(([option, about]) => row(option, about))
  const about = `${command.about.charAt(0).toUpperCase()}${command.about.slice(1)}.`
  return [
    `farthing-admin ${typeOf(command)}`,
    '',
    about,
    ...(options.length > 0 ? ['', ...options] : []),
  ].join('\n')
}

function describeAll(some: readonly Command[]): string {
  const shown = some.filter(({ isInternal }) => !isInternal)
  const rows = shown.map(({ words, subjects, about }) =>
    row(subjects ? `${words} ${subjects}` : words, about),
  )
  return [
    lead,
    '',
    ...rows,
    '',
    'Add --help to a command for its options; --version says which version this is.',
    'Settings come from the environment or, where that names no database, from /etc/farthing or SETTINGS_FOLDER.',
  ].join('\n')
}

/** A name and what it means, in two columns. */
function row(name: string, text: string): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= textColumns - nameColumns)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  const margin = ' '.repeat(nameColumns)
  const first = `  ${name}`
  const head = first.length < nameColumns - 1 ? first.padEnd(nameColumns) : `${first}\n${margin}`
  return `${head}${lines.join(`\n${margin}`)}`
}
