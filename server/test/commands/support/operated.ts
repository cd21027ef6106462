import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { examine } from '../../../src/commands/doctor.ts'
import { keyCommand, settlerCommand, storeCommand } from '../../../src/commands/operator.ts'
import { rehearse } from '../../../src/commands/rehearse/rehearse.ts'
import { openAllSigners } from '../../../src/commands/signer.ts'
import { parseCommand, UsageError } from '../../../src/commands/usage.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { Context } from '../../../src/context.ts'
import { openDatabase } from '../../../src/database/db.ts'
import { operatorActor } from '../../../src/events/append.ts'
import type { Finding } from '../../../src/http/console/operator/view.ts'
import { openLog } from '../../../src/log.ts'
import { openMetrics } from '../../../src/metrics.ts'
import type { Network } from '../../../src/networks.ts'
import { atEnd } from '../../support/at-end.ts'
import { freshDatabase, urlAs } from '../../support/database.ts'
import { freePort } from '../../support/free-port.ts'
import { startProcess } from '../../support/process.ts'
import { secretsKeyFile } from '../../support/secrets-key.ts'
import { until } from '../../support/until.ts'

const main = new URL('../../../src/main.ts', import.meta.url).pathname

export type Ran = { readonly code: number | null; readonly out: string; readonly err: string }

const quiet = { log: openLog('silent'), metrics: openMetrics() }

/** What a command works with. */
function openHere(environment: Readonly<Record<string, string>>): Context {
  const config = readConfig(environment)
  return {
    config,
    db: openDatabase({ url: config.databaseUrl, connections: 4, name: 'farthing-command' }),
    ...quiet,
    now: () => new Date(),
  }
}

/** A command under way. */
type Command = {
  /** What it has printed so far. */
  readonly output: () => string
  readonly kill: () => void
  readonly ended: Promise<Ran>
}

/**
 * A deployment as its operator makes it, on an empty database: by the commands of `farthing-admin` alone, with `serve` and
 * `work` as processes.
 */
export async function openOperated(network: Network, nodes: string) {
  const { url, db } = await freshDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'farthing-operated-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  const port = `${await freePort()}`
  const settings = {
    BASE_URL: `http://127.0.0.1:${port}`,
    NETWORKS: network.id,
    [`${network.id}_RPC_URLS`]: nodes,
    SETTLER_KEYS_FILE: join(folder, 'settler.keys'),
    SECRETS_KEY_FILE: secretsKeyFile,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }

  const begin = (args: readonly string[], changes: Readonly<Record<string, string>> = {}): Command => {
    const child = spawn(process.execPath, [main, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH ?? '',
        DATABASE_URL: urlAs('operator', url),
        ...settings,
        ...changes,
      },
    })
    atEnd(() => child.kill('SIGKILL'))
    const said = { out: '', err: '' }
    child.stdout.on('data', (text) => {
      said.out += text
    })
    child.stderr.on('data', (text) => {
      said.err += text
    })
    return {
      output: () => said.out,
      kill: () => child.kill('SIGKILL'),
      ended: once(child, 'close').then(([code]) => ({ code, ...said })),
    }
  }
  /** The same in this process, which spares the time to start one. */
  const rehearseHere = async (
    args: readonly string[],
    changes: Readonly<Record<string, string>> = {},
  ): Promise<Ran> => {
    const ctx = openHere({ ...settings, ...changes, DATABASE_URL: urlAs('operator', url) })
    const said: string[] = []
    const terminal = { say: (text: string) => said.push(text), readSigners: () => openAllSigners(ctx) }
    try {
      const typed = parseCommand(['rehearse', ...args])
      assert('command' in typed)
      const isPassed = await rehearse(ctx, operatorActor('test'), typed.subjects, typed.options, terminal)
      return { code: isPassed ? 0 : 1, out: `${said.join('\n')}\n`, err: '' }
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      return { code: 1, out: '', err: error.message }
    } finally {
      await ctx.db.close()
    }
  }

  return {
    db,
    folder,
    settings,
    begin,
    rehearseHere,
    /** Runs a command of the operator's that must succeed, in this process, and returns what it would print. */
    async do(...args: string[]): Promise<string> {
      const typed = parseCommand(args)
      assert('command' in typed)
      const { command, subjects, options } = typed
      const [noun, ...verb] = command.words.split(' ')
      const said = [...verb, ...subjects]
      const ctx = openHere({ ...settings, DATABASE_URL: urlAs('operator', url) })
      try {
        if (noun === 'settler') return await settlerCommand(ctx, said, options, () => openAllSigners(ctx))
        const perform = noun === 'key' ? keyCommand : storeCommand
        return await perform(ctx, operatorActor('test'), said, options)
      } finally {
        await ctx.db.close()
      }
    },
    /** Writes a file of the operator's, such as one with a key. */
    async write(name: string, text: string): Promise<string> {
      const file = join(folder, name)
      await writeFile(file, text)
      return file
    },
    read: async (name: string): Promise<string> => await readFile(join(folder, name), 'utf8'),
    /** What doctor finds wrong. */
    async findWrongs(): Promise<readonly Finding[]> {
      const ctx = openHere({ ...settings, DATABASE_URL: urlAs('operator', url) })
      const findings = await examine(ctx, () => openAllSigners(ctx))
      await ctx.db.close()
      return findings.filter(({ fix }) => fix !== null)
    },
    /** Starts `serve` and `work`, and waits until doctor finds nothing wrong. */
    async start() {
      const environment = { ...settings, DATABASE_URL: url, PORT: port }
      const serve = await startProcess('serve', environment)
      const work = await startProcess('work', environment)
      await until('doctor finds nothing wrong', async () => (await this.findWrongs()).length === 0)
      return { serve, work }
    },
  }
}
