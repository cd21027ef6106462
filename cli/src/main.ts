#!/usr/bin/env node
import { parseArgs } from 'node:util'
import manifest from '../package.json' with { type: 'json' }
import { type Command, UsageError } from './command.ts'
import { buyCommand } from './commands/buy.ts'
import { checkoutCommands } from './commands/checkout.ts'
import { eventsCommand } from './commands/events.ts'
import { keyCommands } from './commands/key.ts'
import { linkCommands } from './commands/link.ts'
import { listenCommand } from './commands/listen.ts'
import { payCommand } from './commands/pay.ts'
import { paymentCommands } from './commands/payment.ts'
import { refundCommands } from './commands/refund.ts'
import { reportCommand } from './commands/report.ts'
import { triggerCommand } from './commands/trigger.ts'
import { verifyCommand } from './commands/verify.ts'
import { walletCommands } from './commands/wallet.ts'
import { showError } from './error.ts'
import { commonOptions, helpOf, overview } from './help.ts'
import { openTerminal } from './terminal.ts'

const commands: readonly Command[] = [
  ...checkoutCommands,
  ...linkCommands,
  ...walletCommands,
  ...paymentCommands,
  // `refund` comes after `refund sign` and its like, because the first command whose words all match is taken.
  ...refundCommands,
  reportCommand,
  payCommand,
  buyCommand,
  verifyCommand,
  eventsCommand,
  listenCommand,
  triggerCommand,
  ...keyCommands,
]

process.exitCode = await run(process.argv.slice(2))

/** Finds the command, parses its options and runs it. Returns the exit code. */
async function run(args: readonly string[]): Promise<number> {
  if (args[0] === '--version' || args[0] === '-v') {
    process.stdout.write(`${manifest.version}\n`)
    return 0
  }
  const command = find(args)
  const isText = args.includes('--text') || (process.stdout.isTTY && !args.includes('--json'))
  const terminal = openTerminal(isText)
  if (!command) {
    const isAsked = args.length === 0 || args.some((each) => /^(--help|-h|help)$/.test(each))
    process[isAsked ? 'stdout' : 'stderr'].write(overview(commands, args))
    return isAsked ? 0 : 2
  }
  try {
    const { values, positionals } = parseArgs({
      args: args.slice(command.name.split(' ').length),
      options: { ...command.options, ...commonOptions },
      allowPositionals: true,
    })
    if (values.help) {
      process.stdout.write(helpOf(command))
      return 0
    }
    const url = (values.url as string | undefined) || process.env.FARTHING_URL
    const settings = {
      apiKey: process.env.FARTHING_API_KEY,
      url: url || 'http://127.0.0.1:8402',
      isUrlGiven: Boolean(url),
      privateKey: process.env.FARTHING_PRIVATE_KEY,
      stateFolder: process.env.XDG_STATE_HOME ?? `${process.env.HOME}/.local/state`,
    }
    const [least, most] = countOf(command)
    if (positionals.length < least || positionals.length > most)
      throw new UsageError(`Usage: farthing ${command.name} ${command.arguments}`.trimEnd())
    return (await command.run({ terminal, settings, values, positionals })) ?? 0
  } catch (error) {
    return showError(error, command, isText)
  }
}

function find(args: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, i) => args[i] === word))
}

/** How many positional arguments a command takes: `<orderId>` is required, `[currency]` is optional. */
function countOf({ arguments: text }: Command): [least: number, most: number] {
  const all = text.match(/[<[]/g)?.length ?? 0
  return [all - (text.match(/\[/g)?.length ?? 0), all]
}
