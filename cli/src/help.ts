import type { Command } from './command.ts'
import { paint } from './terminal.ts'

export const commonOptions = {
  json: {
    type: 'boolean',
    about: 'a line of JSON for each thing, as where output is piped',
  },
  text: { type: 'boolean', about: 'for people, also where output is piped' },
  url: { type: 'string', value: 'url', about: 'where Farthing runs, instead of FARTHING_URL' },
  help: { type: 'boolean', short: 'h', about: 'this text' },
} as const satisfies Command['options']

export function overview(commands: readonly Command[], args: readonly string[]): string {
  const [word] = args.filter((each) => each !== 'help' && !each.startsWith('-'))
  const group = commands.filter(({ name }) => name.split(' ')[0] === word)
  const shown = group.length > 0 ? group : commands
  const unknown = word !== undefined && group.length === 0 ? `There is no command "${word}".\n\n` : ''
  const lines = shown.map(({ name, summary }) => [name, summary] as const)
  return `${unknown}${title('farthing <command>')}

${columns(lines)}

${title('Settings, from the environment')}

${columns([
  ['FARTHING_API_KEY', 'your store’s key, sk_…'],
  ['FARTHING_URL', 'where Farthing runs; default http://127.0.0.1:8402'],
  ['FARTHING_PRIVATE_KEY', 'of the wallet that pays: 0x…, or base58 (Solana)'],
])}

farthing <command> --help says more about one.
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
