import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Actor } from '@farthing/sdk'
import { checkCommand, recoverCommand } from './commands/audit.ts'
import { directoryCommand } from './commands/directory.ts'
import { examine, render } from './commands/doctor.ts'
import { keyCommand, settlerCommand, storeCommand } from './commands/operator.ts'
import { audit, serve, work } from './commands/processes.ts'
import { reconcileCommand } from './commands/reconcile.ts'
import { eraseCommand, exportCommand } from './commands/retention.ts'
import { rollupsCommand } from './commands/rollups.ts'
import { secretsCommand } from './commands/secrets.ts'
import { setupCommand } from './commands/setup/setup.ts'
import { openAllSigners, signer } from './commands/signer.ts'
import type { Command } from './commands/table.ts'
import { type Options, parseCommand, UsageError } from './commands/usage.ts'
import type { Environment } from './config/parse.ts'
import { ConfigError, findSettings, readConfig, readSignerChoices, readUser } from './config/read.ts'
import type { Context } from './context.ts'
import { checkCell } from './database/cell.ts'
import { openDatabase } from './database/db.ts'
import { checkSchema, type Migrated, mayMigrate, migrate } from './database/migrate.ts'
import { describeRights } from './database/rights.ts'
import { SchemaError } from './database/schema.ts'
import { operatorActor } from './events/append.ts'
import { openLog, openStandardError } from './log.ts'
import { openMetrics } from './metrics.ts'
import { Problem } from './problems.ts'
import { describeVersion } from './version.ts'

const args = process.argv.slice(2)

try {
  await run()
} catch (error) {
  const isExplained =
    error instanceof ConfigError ||
    error instanceof SchemaError ||
    error instanceof UsageError ||
    error instanceof Problem
  process.stderr.write(
    isExplained ? `${explain(error)}\n` : `${error instanceof Error ? error.stack : error}\n`,
  )
  process.exitCode = 1
}

/** Includes the causes, which only operators may read, because only operators run these commands. */
function explain({ message, cause }: Error): string {
  if (cause instanceof Error) return `${message} ${explain(cause)}`
  return typeof cause === 'string' ? `${message} ${cause}` : message
}

async function run(): Promise<void> {
  if (args.length === 1 && args[0] === '--version') return print(describeVersion())
  const typed = parseCommand(args)
  if ('help' in typed) return print(typed.help)
  const { command, subjects, options } = typed
  switch (command.words) {
    case 'serve':
    case 'work':
    case 'audit': {
      const ctx = openContext(command.words, findSettings(command.role))
      await prepareDatabase(ctx).catch(async (error) => {
        // An open connection would keep the process alive, and nothing would restart it.
        await ctx.db.close()
        throw error
      })
      return await { serve, work, audit }[command.words](ctx)
    }
    case 'signer': {
      const config = readSignerChoices()
      return await signer(config, openLog(config.logLevel), () => new Date())
    }
    case 'dev': {
      // Loaded only here: a process that accepts real payments contains none of it.
      const { dev } = await import('./dev/dev.ts')
      return await dev(openContext, () => new Date())
    }
    case 'dev serve':
    case 'dev work': {
      const { runPart } = await import('./dev/parts.ts')
      const part = command.words === 'dev serve' ? 'serve' : 'work'
      return await runPart(openContext(part), part)
    }
    case 'migrate':
      return await briefly(command, async (ctx) => {
        const { applied, rights } = await migrateBy(ctx)
        print(applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`)
        const told = await describeRights(rights)
        if (told !== null) print(told)
      })
    case 'retention export':
      return await briefly(command, async (ctx) => {
        await checkDatabase(ctx)
        const told = await exportCommand(ctx, options, async (line) => {
          if (!process.stdout.write(line)) await once(process.stdout, 'drain')
        })
        process.stderr.write(`${told}\n`)
      })
    case 'doctor':
      return await briefly(command, async (ctx) => {
        const findings = await examine(ctx, () => openAllSigners(ctx))
        print(render(findings))
        if (findings.some(({ fix }) => fix !== null)) process.exitCode = 1
      })
    case 'rehearse':
      return await briefly(command, async (ctx) => {
        // Loaded only here: it brings wallets, which no other command needs.
        const { rehearse } = await import('./commands/rehearse/rehearse.ts')
        const terminal = { say: print, readSigners: () => openAllSigners(ctx) }
        if (!(await rehearse(ctx, actorOf(options), subjects, options, terminal))) process.exitCode = 1
      })
    default:
      return await briefly(command, async (ctx) => {
        if (command.role !== null) await checkDatabase(ctx)
        print(await perform(ctx, command, subjects, options))
      })
  }
}

/** Runs a command that does one thing and prints the result. */
async function perform(
  ctx: Context,
  { words }: Command,
  subjects: readonly string[],
  options: Options,
): Promise<string> {
  const [noun, ...verb] = words.split(' ')
  const said = [...verb, ...subjects]
  const actor = actorOf(options)
  switch (noun) {
    case 'audit':
      return said[0] === 'recover'
        ? await recoverCommand(ctx, subjects)
        : await checkCommand(ctx, subjects, options)
    case 'store':
      return await storeCommand(ctx, actor, said, options)
    case 'key':
      return await keyCommand(ctx, actor, said, options)
    case 'member': {
      // Loaded only here: it brings the whole of WebAuthn, which work never needs.
      const { memberCommand } = await import('./commands/members.ts')
      return await memberCommand(ctx, actor, said, options)
    }
    case 'settler':
      return await settlerCommand(ctx, said, options, () => openAllSigners(ctx))
    case 'secrets':
      return await secretsCommand(ctx, said, options)
    case 'erase':
      return await eraseCommand(ctx, said)
    case 'rollups':
      return await rollupsCommand(ctx, said, options)
    case 'directory':
      return await directoryCommand(ctx, said, options)
    case 'setup':
      return await setupCommand(ctx, options)
    case 'reconcile':
      return await reconcileCommand(ctx, options)
    default:
      return assert.fail(`nothing performs ${words}`)
  }
}

function actorOf({ as }: Options): Actor {
  return operatorActor(typeof as === 'string' ? as : readUser())
}

async function migrateBy({ db, config }: Context): Promise<Migrated> {
  return await migrate(db, { statementSeconds: config.migrationStatementSeconds, cell: config.cell })
}

async function prepareDatabase(ctx: Context): Promise<void> {
  const migrates = ctx.config.migrateOnStart && (await mayMigrate(ctx.db))
  await (migrates ? migrateBy(ctx) : checkDatabase(ctx))
}

async function checkDatabase({ db, config }: Context): Promise<void> {
  await checkSchema(db)
  await checkCell(db, config.cell)
}

async function briefly({ role }: Command, use: (ctx: Context) => Promise<void>): Promise<void> {
  // Commands that make a key or prepare the directory may run before there is a database or a public address.
  const none = { DATABASE_URL: 'postgres://none', BASE_URL: 'http://none' }
  const settings = findSettings(role)
  const ctx = openContext('command', role === null ? { ...none, ...settings } : settings)
  try {
    await use(ctx)
  } finally {
    await Promise.all([ctx.db.close(), ctx.directory?.close()])
  }
}

function openContext(name: string, environment?: Environment): Context {
  const config = readConfig(environment)
  // A command prints its answer to stdout, so its log lines go elsewhere.
  const log = openLog(config.logLevel, name === 'command' ? openStandardError() : undefined).child({
    cell: config.cell,
  })
  const db = openDatabase({
    url: config.databaseUrl,
    connections: config.databaseConnections,
    name: `farthing-${name}`,
  })
  const directory =
    config.directoryUrl === ''
      ? null
      : openDatabase({ url: config.directoryUrl, connections: 4, name: `farthing-directory-${config.cell}` })
  return {
    ...{ config, log, db, metrics: openMetrics({ cell: config.cell }), now: () => new Date() },
    ...(directory && { directory }),
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
