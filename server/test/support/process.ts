import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { atEnd } from './at-end.ts'
import { urlAs } from './database.ts'
import { secretsKeyFile } from './secrets-key.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname

export type Running = {
  readonly child: ChildProcess
  /** From the log line that reports the start: `address`, `operationsPort`. */
  readonly started: { readonly address?: string; readonly operationsPort: number }
  /** Everything it has written so far. */
  readonly output: () => string
  kill(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts `serve`, `work` or `signer` as a separate process and waits until it is up. It is killed when the file is done. */
export async function startProcess(
  command: 'serve' | 'work' | 'signer' | 'audit',
  environment: Readonly<Record<string, string>>,
): Promise<Running> {
  const child = spawn(process.execPath, [main, command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH ?? '',
      BASE_URL: 'https://farthing.example',
      PORT: '0',
      OPERATIONS_PORT: '0',
      ECB_RATES_URL: 'http://127.0.0.1:9/ecb',
      EXCHANGE_RATES_URL: 'http://127.0.0.1:9/exchange',
      SECRETS_KEY_FILE: secretsKeyFile,
      SETTLER_ETH_PER_DAY: '',
      SETTLER_SOL_PER_DAY: '',
      ...environment,
      ...(URL.canParse(environment.DATABASE_URL ?? '') &&
        command !== 'signer' && { DATABASE_URL: urlAs(command, environment.DATABASE_URL ?? '') }),
    },
  })
  atEnd(() => child.kill('SIGKILL'))
  let output = ''
  child.stderr?.on('data', (chunk) => {
    output += chunk
  })
  const started = new Promise<Running['started']>((resolve, reject) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      output += `${line}\n`
      if (/"msg":"(listening|working|signing|auditing)"/.test(line)) resolve(JSON.parse(line))
    })
    child.once('exit', (code) =>
      reject(new Error(`${command} exited with ${code} before it was up:\n${output}`)),
    )
  })
  return {
    child,
    started: await started,
    output: () => output,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      child.kill(signal)
      await once(child, 'exit')
      return child.exitCode
    },
  }
}
