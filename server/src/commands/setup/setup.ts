import { lookup } from 'node:dns/promises'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Context } from '../../context.ts'
import { createKeyFile } from '../../secrets/key-file.ts'
import { createSettler } from '../create-settler.ts'
import { type Options, UsageError } from '../usage.ts'
import { type Answers, collectAnswers } from './answers.ts'
import { checkMachine } from './checks.ts'
import { drawFiles } from './files.ts'

/**
 * `setup` turns a few answers into a folder that holds a whole deployment, to be read before it is applied. It changes
 * nothing else and, unlike install.sh in the folder, needs no root. Returns the text to print.
 */
export async function setupCommand(ctx: Context, options: Options): Promise<string> {
  const folder = resolve(typeof options.out === 'string' ? options.out : 'farthing-setup')
  const terminal = process.stdin.isTTY
    ? createInterface({ input: process.stdin, output: process.stdout })
    : null
  const answers = await collectAnswers(options, {
    ask: terminal && ((question) => terminal.question(question)),
    hasAddress: (host) =>
      lookup(host).then(
        () => true,
        () => false,
      ),
  })
  terminal?.close()
  const checks = await checkMachine(ctx, answers)
  const report = checks.map(({ what, says, isWrong }) => `${isWrong ? 'WRONG ' : 'ok    '} ${what}: ${says}`)
  if (checks.some(({ isWrong }) => isWrong))
    throw new UsageError(
      `${report.join('\n')}\nNothing was written. Correct what is wrong, then run setup again.`,
    )
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'EEXIST'
        ? `${folder} exists already, perhaps with keys in it. Choose another: --out FOLDER`
        : `${folder} cannot be made: ${error.message}.`,
    )
  })
  for (const { name, text, isSecret } of drawFiles(answers)) {
    const file = join(folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text, { mode: isSecret ? 0o600 : 0o644 })
  }
  await createKeyFile(join(folder, 'secrets.keys'))
  const settler = await createSettler(answers.network, join(folder, 'settler.keys'))
  if ('refusal' in settler) throw new UsageError(settler.refusal)
  const [, address = ''] = /^Settler (\S+)/.exec(settler.says) ?? []
  return [...report, '', ...describeNext(folder, answers, address)].join('\n')
}

function describeNext(folder: string, { network, host }: Answers, settler: string): string[] {
  return [
    `Everything is in ${folder}. Read install.sh, then run it as root:`,
    `  sh ${folder}/install.sh`,
    `Send some ${network.nativeCurrency.symbol} on ${network.name} to the settler, which pays for settlements:`,
    `  ${settler}`,
    'Then, as root:',
    `  farthing-admin settler deploy ${network.id}`,
    '  farthing-admin doctor',
    `When doctor says ok everywhere, https://${host} takes payments. Keep the key in ${folder}/store.txt, back up /etc/farthing, and delete ${folder}.`,
  ]
}
