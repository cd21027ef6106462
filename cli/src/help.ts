import type { Command } from './command.ts'
import { paint } from './terminal.ts'

export const commonOptions = {
  json: {
    type: 'boolean',
    about: 'print one JSON object per line; the default in a pipe',
  },
  text: { type: 'boolean', about: 'print text for people, even in a pipe' },
  url: { type: 'string', value: 'url', about: 'where Farthing runs; overrides FARTHING_URL' },
  help: { type: 'boolean', short: 'h', about: 'print this help' },
} as const satisfies Command['options']

export function overview(commands: readonly Command[], args: readonly string[]): string {
  const [word] = args.filter((each) => each !== 'help' && !each.startsWith('-'))
  const group = commands.filter(({ name }) => name.split(' ')[0] === word)
  const shown = group.length > 0 ? group : commands
  const unknown = word !== undefined && group.length === 0 ? `Unknown command "${word}".\n\n` : ''
  const lines = shown.map(({ name, summary }) => [name, summary] as const)
  return `${unknown}${title('farthing <command>')}

${columns(lines)}

${title('Environment variables')}

${columns([
  ['FARTHING_API_KEY', 'your store’s API key, sk_…'],
  ['FARTHING_URL', 'where Farthing runs; default http://127.0.0.1:8402'],
  ['FARTHING_PRIVATE_KEY', 'key that pays or refunds: 0x…, or base58 (Solana)'],
])}

For details of one command: farthing <command> --help
The version: farthing --version
`
}

export function helpOf({ name, arguments: args, summary, options, notes = [] }: Command): string {
  const lines = Object.entries({ ...options, ...commonOptions }).map(
    ([option, { short, value, about }]: [string, Command['options'][string]]) =>
      [`${short ? `-${short}, ` : ''}--${option}${value ? ` <${value}>` : ''}`, about] as const,
  )
  const below = notes.length > 0 ? `\n${notes.join('\n')}\n` : ''
  return `${title(`farthing ${name} ${args}`.trimEnd())}

${summary}.

${columns(lines)}
${below}`
}

function title(text: string): string {
  return paint('bold', text)
}

function columns(lines: readonly (readonly [string, string])[]): string {
  const widest = Math.max(...lines.map(([left]) => left.length))
  return lines.map(([left, right]) => `  ${paint('cyan', left.padEnd(widest))}  ${right}`).join('\n')
}
