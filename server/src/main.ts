import { userInfo } from 'node:os'
import { parseArgs } from 'node:util'
import type { Actor } from '@farthing/sdk'
import { archiveCommand, eraseCommand } from './commands/archive.ts'
import { directoryCommand } from './commands/directory.ts'
import { examine, render } from './commands/doctor.ts'
import { openAllSigners } from './commands/open-signers.ts'
import { keyCommand, settlerCommand, storeCommand, UsageError } from './commands/operator.ts'
import { serve, work } from './commands/processes.ts'
import { rollupsCommand } from './commands/rollups.ts'
import { secretsCommand } from './commands/secrets.ts'
import { signer } from './commands/signer.ts'
import { ConfigError, readConfig, readSignerChoices } from './config.ts'
import type { Context } from './context.ts'
import { checkCell } from './database/cell-rows.ts'
import { openDatabase } from './database/db.ts'
import { checkSchema, type Migrated, mayMigrate, migrate } from './database/migrate.ts'
import { describeRights } from './database/rights.ts'
import { SchemaError } from './database/schema.ts'
import { operatorActor } from './events/actor.ts'
import { openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import { listConnected, openRails } from './payments/rails.ts'
import { startReconciling } from './payments/restores/reconcile.ts'
import { Problem } from './problems.ts'

const usage = `Farthing is a self-hosted crypto checkout: a store gets paid in USDC on Base or Solana,
straight into its own wallet.

  serve                        answer HTTP requests
  work                         run background work: settling, following chains, expiry, events, rates
  signer                       hold the settlers' keys for work, and sign what a settler may sign;
                               listens on SIGNER_SOCKET
  dev                          run serve and work, with a private database, a local chain and a demo store
  migrate                      update the database schema
  doctor                       check the deployment; print what is wrong and what to do

  store create --name NAME     create a store and its first key; --test for a test store,
                               --evm-wallet ADDRESS and --solana-wallet ADDRESS to register wallets,
                               --support-email EMAIL and --support-url URL for its buyers
  store list                   list the stores
  store approve STORE          let a store that somebody signed up for create checkouts
  store suspend STORE --reason TEXT
                               let a store create no checkouts; its owners read the reason
  store resume STORE           lift the suspension
  store set STORE              --wallet-changes key or member: whether a key can change the wallet that
                               is paid, or an owner has to confirm it in the console
  key create STORE             create another key, which may do everything, or --preset create or read,
                               or --scopes LIST; --label NAME; --addresses LIST to use it from only
  key list STORE               list the store's keys
  key rotate KEY               create a new key; the old one expires after --overlap-hours (default 24)
  key revoke KEY               revoke a key now
  member invite STORE --name NAME
                               print a link with which the store's first owner enrols in the console;
                               --role ROLE (owner, manager, developer or viewer), --email EMAIL
  member list STORE            list the store's members and open invitations
  member role STORE MEMBER ROLE
                               give a member another role; owner only if the store has no owner
  member remove STORE MEMBER   remove a member; with the last owner gone you can invite another
  member operator MEMBER on    say that a member runs this deployment; off: not any more
  directory migrate            update the schema of the database that cells share, DIRECTORY_URL
  directory adopt              enter this cell there, with all wallets and settlers that it uses
  directory list               list the cells
  directory claim FAMILY ADDRESS --mode live|test
                               let this cell use a wallet that cannot sign, such as a custodial one
  directory place              say which cell a new store goes to: --member MEMBER, --evm-wallet ADDRESS,
                               --solana-wallet ADDRESS, --test
  directory drain CELL         give a cell no new stores; directory resume CELL: give it some again
  directory remove CELL        remove a cell that has given up all it had;
                               --lost: one whose database never starts again
  directory maps --out FOLDER  write the maps of the proxy in front of the cells
  directory restored --cells LIST
                               say that the directory was restored: all cells tell it what they use
  archive list                 list the months of the archive: how much each holds, and how long it is kept
  archive export MONTH --out FILE
                               write a month such as 2026-08 to a file, one line of JSON per checkout
                               and per transaction; compressed if its name ends in .gz
  archive drop MONTH           drop a month that was exported and whose retention
                               (RETENTION_CHECKOUTS_DAYS) is over; --force: before that;
                               --without-export: even if no file has all of it
  erase payer ADDRESS          erase a payer's data from the archive, except what the books need
  reconcile                    compare a restored database with the chains; run it before serve and work
  rollups rebuild              count what stores took again, from their event logs, while serve and work
                               run; --store STORE for one store only
  settler create NETWORK       make a key that pays for settlements, e.g. on BASE_MAINNET, and append it
                               to --out FILE (default: SETTLER_KEYS_FILE); prints its address
  settler deploy NETWORK       put the batcher contract on a network, unless it is there
  settler add NETWORK ADDRESS  let an account pay for settlements
  settler list                 list the settlers and their balances
  settler drain ADDRESS        give an account no new payments, and retire it when it is done;
                               --network NETWORK if it settles on several
  secrets create               make the key that seals webhook secrets, in --out FILE (default:
                               SECRETS_KEY_FILE), which must not exist yet
  secrets rotate               seal all webhook secrets with the first key of SECRETS_KEY_FILE,
                               while serve and work run

store, key and member changes are recorded in the store's event log with your user name, or --as NAME.
Settings come from the environment: see .env.example.
`

const [command = '', ...rest] = process.argv.slice(2)

try {
  await run()
} catch (error) {
  const isExplained =
    error instanceof ConfigError ||
    error instanceof SchemaError ||
    error instanceof UsageError ||
    error instanceof Problem ||
    // parseArgs explains wrong options to the person who typed them.
    (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
  process.stderr.write(
    isExplained ? `${explain(error)}\n` : `${error instanceof Error ? error.stack : error}\n`,
  )
  process.exitCode = 1
}

/** The causes are for operators, and so are the commands. */
function explain({ message, cause }: Error): string {
  if (cause instanceof Error) return `${message} ${explain(cause)}`
  return typeof cause === 'string' ? `${message} ${cause}` : message
}

async function run(): Promise<void> {
  switch (command) {
    case 'serve':
    case 'work': {
      const ctx = openContext(command)
      await prepareDatabase(ctx).catch(async (error) => {
        // An open connection would keep the process alive, and nothing would restart it.
        await ctx.db.close()
        throw error
      })
      return await (command === 'serve' ? serve(ctx) : work(ctx))
    }
    case 'signer': {
      const config = readSignerChoices()
      return await signer(config, openLog(config.logLevel), () => new Date())
    }
    case 'dev': {
      // Loaded only here: a process that accepts real payments contains none of it.
      const { dev } = await import('./dev/dev.ts')
      const { isPart, runPart } = await import('./dev/parts.ts')
      const [part] = rest
      return await (isPart(part) ? runPart(openContext(part), part) : dev(openContext, () => new Date()))
    }
    case 'migrate':
      return await briefly(async (ctx) => {
        const { applied, rights } = await migrateBy(ctx)
        print(applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`)
        const told = await describeRights(rights)
        if (told !== null) print(told)
      })
    case 'doctor':
      return await briefly(async (ctx) => {
        const findings = await examine(ctx, () => openAllSigners(ctx))
        print(render(findings))
        if (findings.some(({ fix }) => fix !== null)) process.exitCode = 1
      })
    case 'reconcile':
      return await briefly(async (ctx) => {
        await checkDatabase(ctx)
        await startReconciling(ctx, listConnected(openRails(ctx)))
        print(
          'Start work and serve now. Payments are accepted again once nothing sent before the restore can still arrive: in about 7 minutes.',
        )
      })
    case 'store':
    case 'key':
    case 'member':
    case 'rollups':
    case 'settler':
    case 'secrets':
    case 'archive':
    case 'erase':
    case 'directory': {
      const { values, positionals } = parseArgs({
        args: rest,
        allowPositionals: true,
        options: {
          name: { type: 'string' },
          store: { type: 'string' },
          test: { type: 'boolean' },
          'support-email': { type: 'string' },
          'support-url': { type: 'string' },
          'evm-wallet': { type: 'string' },
          'solana-wallet': { type: 'string' },
          'wallet-changes': { type: 'string' },
          reason: { type: 'string' },
          'overlap-hours': { type: 'string' },
          network: { type: 'string' },
          as: { type: 'string' },
          preset: { type: 'string' },
          scopes: { type: 'string' },
          label: { type: 'string' },
          addresses: { type: 'string' },
          out: { type: 'string' },
          role: { type: 'string' },
          email: { type: 'string' },
          mode: { type: 'string' },
          member: { type: 'string' },
          cells: { type: 'string' },
          force: { type: 'boolean' },
          'without-export': { type: 'boolean' },
          lost: { type: 'boolean' },
        },
      })
      const perform = {
        store: storeCommand,
        key: keyCommand,
        // Loaded only here: it brings the whole of WebAuthn, which work never needs.
        member: async (ctx: Context, actor: Actor, words: readonly string[], options: typeof values) =>
          (await import('./commands/members.ts')).memberCommand(ctx, actor, words, options),
        rollups: (ctx: Context, _actor: Actor, words: readonly string[], options: typeof values) =>
          rollupsCommand(ctx, words, options),
        secrets: (ctx: Context, _actor: Actor, words: readonly string[], options: typeof values) =>
          secretsCommand(ctx, words, options),
        archive: (ctx: Context, _actor: Actor, words: readonly string[], options: typeof values) =>
          archiveCommand(ctx, words, options),
        erase: (ctx: Context, _actor: Actor, words: readonly string[]) => eraseCommand(ctx, words),
        directory: (ctx: Context, _actor: Actor, words: readonly string[], options: typeof values) =>
          directoryCommand(ctx, words, options),
        settler: (ctx: Context, _actor: Actor, words: readonly string[], options: typeof values) =>
          settlerCommand(ctx, words, options, () => openAllSigners(ctx)),
      }[command]
      return await briefly(async (ctx) => {
        // A key can be made, and the directory prepared, before there is a database.
        const isFileOnly =
          ((command === 'settler' || command === 'secrets') && positionals[0] === 'create') ||
          (command === 'directory' && positionals[0] === 'migrate')
        if (!isFileOnly) await checkDatabase(ctx)
        print(await perform(ctx, operatorActor(values.as ?? userInfo().username), positionals, values))
      })
    }
    default:
      process.stdout.write(usage)
      if (command !== '' && command !== 'help' && command !== '--help')
        throw new UsageError(`Unknown command: ${command}`)
  }
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

async function briefly(perform: (ctx: Context) => Promise<void>): Promise<void> {
  const ctx = openContext('command')
  try {
    await perform(ctx)
  } finally {
    await Promise.all([ctx.db.close(), ctx.directory?.close()])
  }
}

function openContext(name: string, overrides: Readonly<Record<string, string>> = {}): Context {
  const config = readConfig(Object.keys(overrides).length > 0 ? overrides : undefined)
  const log = openLog(config.logLevel).child({ cell: config.cell })
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
