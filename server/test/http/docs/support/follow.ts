import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { atEnd } from '../../../support/at-end.ts'
import { type Block, isRun, root } from '../blocks.ts'

/** What a reader saw: what the page's commands printed, and what `dev` logged meanwhile. */
export type Sight = { readonly output: string; readonly errors: string; readonly log: string }

type Following = {
  /** What became of each block. */
  readonly results: readonly { readonly output: string; readonly errors: string }[]
  /** The operations of the API that were asked for with success, or with 402, as its description names them. */
  readonly operations: readonly string[]
  /** What `serve` and `work` logged as errors. */
  readonly alarms: readonly string[]
}

const reader = new URL('reader.ts', import.meta.url).pathname

/**
 * Follows a page as its reader does, with the ports, files and history that `npm run dev` has in a clean clone. Each page
 * has a clone, a network and a `dev` of its own, so that no page relies on what another one left behind.
 */
export async function followPage(blocks: readonly Block[]): Promise<Following> {
  const folder = await makeFolder()
  const clone = join(folder, 'farthing')
  await makeClone(clone)
  const script = join(folder, 'script')
  await writeFile(script, await writeScript(blocks, folder))
  const [program = '', ...args] = [...ownNetwork(), process.execPath, reader, clone, script]
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: folder,
      LANG: 'C.UTF-8',
      ...(process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
    },
  })
  const [seen, complaint, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  assert.equal(status, 0, complaint)
  const { output, errors, log } = JSON.parse(seen) as Sight
  const outputs = output.split(/^@block\n/m).slice(1)
  const complaints = errors.split(/^@block\n/m).slice(1)
  const lines = log.split('\n').filter((line) => line.startsWith('{'))
  return {
    results: outputs.map((printed, i) => ({ output: printed, errors: complaints[i] ?? '' })),
    operations: operationsIn(lines),
    alarms: lines.filter((line) => /^\{"level":"(error|fatal)"/.test(line)),
  }
}

/** A folder that is deleted after the tests. If we are root, PostgreSQL runs as another user, who must be able to enter it. */
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-docs-'))
  await chmod(folder, 0o755)
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** The files that a clone of this working tree would have, with its dependencies installed. */
async function makeClone(clone: string): Promise<void> {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  await mkdir(clone)
  for (const file of listed.split('\0').filter((name) => name !== '' && existsSync(join(root, name))))
    await cp(join(root, file), join(clone, file))
  await symlink(join(root, 'node_modules'), join(clone, 'node_modules'))
}

/** A command that runs another in a network that has only loopback, so that its ports are free whatever else runs here. */
function ownNetwork(): string[] {
  const raise = (then: string) => ['sh', '-c', `ip link set lo up && exec ${then} "$@"`, 'sh']
  const [user, group] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  if (user === 0) return ['unshare', '--net', ...raise('')]
  // Only root can raise it, and root is not who runs `dev`.
  return ['unshare', '--map-root-user', '--net', ...raise(`unshare --map-user=${user} --map-group=${group}`)]
}

/**
 * Logs the status of each request and each command that fails. Exit code 28 of curl is no failure: the block's own time
 * limit was reached, which is how the docs stop a stream.
 */
const preamble = `
set -uE -o pipefail
trap 'code=$?; [ $code = 28 ] || echo "@failed $code: $BASH_COMMAND" >&2' ERR
curl() { command curl -w '\\n%{stderr}@status %{http_code}\\n' "$@"; }
`

async function writeScript(blocks: readonly Block[], folder: string): Promise<string> {
  const parts = blocks.map(async (block, i) => {
    // The block before may have left its last line open.
    const begin = "printf '\\n@block\\n'; printf '\\n@block\\n' >&2\n"
    const file = join(folder, `block-${i + 1}`)
    if (block.fileName !== null && !block.isElsewhere) {
      await writeFile(file, `${block.text}\n`)
      return `${begin}cp ${file} ${block.fileName}\n`
    }
    if (!isRun(block)) return begin
    if (block.language === 'sh') return `${begin}${block.text}\n`
    await writeFile(file, block.text)
    return `${begin}cp ${file} block-${i + 1}.ts && node block-${i + 1}.ts\n`
  })
  return `${preamble}${(await Promise.all(parts)).join('')}`
}

function operationsIn(lines: readonly string[]): string[] {
  return lines
    .filter((line) => line.includes('"route"'))
    .map((line) => JSON.parse(line) as { method: string; route: string; status: number })
    .filter(({ status }) => status < 300 || status === 402)
    .map(({ method, route }) => `${method} ${route.replace(/:(\w+)/g, '{$1}')}`)
}
