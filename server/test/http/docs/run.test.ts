/**
 * Runs the commands in the docs: all blocks of a page in order, in one shell, against a server with a chain and a
 * worker. CONTRIBUTING.md explains the info strings of blocks.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { privateKeyToAccount } from 'viem/accounts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { openPageShop } from '../page/support/page-shop.ts'
import { type Block, readPages, root } from './blocks.ts'

/** `npm run quickstart:test` runs the README's commands in a clean clone; CONTRIBUTING's are for developers. */
const elsewhere = ['README.md', 'CONTRIBUTING.md']
/** Far longer than any page takes. A block that hangs must not hang the tests. */
const pageTimeoutMs = 180_000

const receiptKeys = join(await mkdtemp(join(tmpdir(), 'farthing-docs-keys-')), 'receipt-keys.pem')
await writeFile(
  receiptKeys,
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }),
)
atEnd(() => rm(dirname(receiptKeys), { recursive: true }))
const shop = await openPageShop({ network: 'LOCAL', settings: { RECEIPT_KEYS_FILE: receiptKeys } })
const payerKey = fundedKey(2)
await shop.chain.mint(privateKeyToAccount(payerKey).address, 1_000_000_000n)
const baseUrl = shop.ctx.config.baseUrl

const pages = readPages().filter(({ file }) => !elsewhere.includes(file))

for (const { file, blocks } of pages.filter(({ blocks }) => blocks.some(canRun))) {
  test(`${file}: every block that can run does what the page says`, async () => {
    const results = await runPage(blocks)
    assert.equal(
      results.length,
      blocks.length,
      `the shell of ${file} exited early:\n${results.at(-1)?.errors}`,
    )
    for (const [i, block] of blocks.entries()) {
      const { output, errors } = results[i] ?? assert.fail()
      const report = `${file}, block ${i + 1}:\n${block.text}\n--- stdout\n${output}\n--- stderr\n${errors}`
      if (!canRun(block)) continue
      assert.doesNotMatch(errors, /^@failed/m, report)
      const statuses = [...errors.matchAll(/^@status (\d+)$/gm)].map(([, status]) => status ?? '')
      const unexpected = statuses.filter((status) => !/^2/.test(status))
      assert.deepEqual(unexpected, block.statuses, report)
      const documented = blocks[i + 1]
      if (documented?.language === 'json' && !documented.isElsewhere)
        assertSameShape(JSON.parse(documented.text), lastJson(output, report), report)
      if (documented?.language === 'text' && documented.fileName === null)
        assert.equal(output.trim(), documented.text, report)
    }
  })
}

test('every JSON block in the docs is valid JSON', () => {
  for (const { file, blocks } of readPages())
    for (const { text } of blocks.filter(({ language }) => language === 'json'))
      assert.doesNotThrow(() => JSON.parse(text), `${file}:\n${text}`)
})

test('the TypeScript blocks in the docs have no type errors', async () => {
  const folder = await makeFolder()
  const files = pages.flatMap(({ file, blocks }) =>
    blocks
      .filter(({ language }) => language === 'ts')
      .map(
        ({ text, fileName }, i) => [`${file.replaceAll('/', '-')}-${fileName ?? `${i}.ts`}`, text] as const,
      ),
  )
  for (const [name, text] of files) await writeFile(join(folder, name), text)
  const config = { extends: `${root}tsconfig.json`, files: files.map(([name]) => name), include: [] }
  await writeFile(join(folder, 'docs.tsconfig.json'), JSON.stringify(config))
  const tsc = spawn(`${root}node_modules/.bin/tsc`, ['-p', 'docs.tsconfig.json'], { cwd: folder })
  const [complaints] = await Promise.all([read(tsc.stdout), once(tsc, 'exit')])
  assert.equal(complaints, '')
  assert(files.length > 0)
})

test('every operation of the API has an example that ran', async () => {
  const document = JSON.parse(await (await fetch(`${baseUrl}/openapi.json`)).text()) as {
    paths: Record<string, Record<string, unknown>>
  }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const { values } = await shop.ctx.metrics.requests.get()
  const ran = new Set(
    values
      .filter(({ labels }) => Number(labels.status) < 300 || Number(labels.status) === 402)
      .map(({ labels }) => `${labels.method} ${String(labels.route).replace(/:(\w+)/g, '{$1}')}`),
  )
  assert.deepEqual(
    operations.filter((operation) => !ran.has(operation)),
    [],
  )
})

function canRun({ language, isElsewhere, fileName }: Block): boolean {
  return !isElsewhere && (language === 'sh' || (language === 'ts' && fileName === null))
}

type Result = { readonly output: string; readonly errors: string }

/** A folder that looks like a clone of the repository and is deleted after the tests. */
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-docs-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  for (const name of await readdir(root))
    if (!name.startsWith('.')) await symlink(root + name, join(folder, name))
  return folder
}

/** Runs all blocks of a page in one shell. */
async function runPage(blocks: readonly Block[]): Promise<Result[]> {
  const folder = await makeFolder()
  await mkdir(join(folder, '.dev'))
  await writeFile(join(folder, '.dev/env'), devEnvironment)
  await writeFile(join(folder, 'settler.keys'), fundedKey(1))
  await writeFile(join(folder, '.env'), operatorEnvironment)
  const shell = spawn('/bin/bash', [], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    // In its own process group, so that processes which a block leaves running can be killed with it.
    detached: true,
    env: environment(folder),
  })
  const end = () => endGroup(shell)
  atEnd(end)
  const timer = setTimeout(end, pageTimeoutMs)
  shell.stdin.end(await script(blocks, folder))
  const [output, errors] = await Promise.all([read(shell.stdout), read(shell.stderr), once(shell, 'exit')])
  clearTimeout(timer)
  end()
  const outputs = output.split(/^@block\n/m).slice(1)
  const complaints = errors.split(/^@block\n/m).slice(1)
  return outputs.map((text, i) => ({ output: text, errors: complaints[i] ?? '' }))
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

async function script(blocks: readonly Block[], folder: string): Promise<string> {
  const parts = blocks.map(async (block, i) => {
    const begin = 'echo @block; echo @block >&2\n'
    if (block.fileName !== null) {
      await writeFile(join(folder, block.fileName), block.text)
      return begin
    }
    if (!canRun(block)) return begin
    if (block.language === 'sh') return `${begin}${block.text}\n`
    const name = `block-${i + 1}.ts`
    await writeFile(join(folder, name), block.text)
    return `${begin}node ${name}\n`
  })
  return `${preamble}${(await Promise.all(parts)).join('')}`
}

/** The file that dev writes for a second terminal. */
const devEnvironment = `
export FARTHING_URL=${baseUrl}
export FARTHING_API_KEY=${shop.key}
export FARTHING_PRIVATE_KEY=${payerKey}
export STORE_PRIVATE_KEY=${fundedKey(1)}
export CHAIN_URL=${shop.chain.url}
`

/** The settings that an operator has before the page on operating begins. */
const operatorEnvironment = `
DATABASE_URL=${shop.databaseUrl}
BASE_URL=${baseUrl}
NETWORKS=LOCAL
LOCAL_RPC_URLS=${shop.chain.url}
SETTLER_KEYS_FILE=settler.keys
ECB_RATES_URL=
EXCHANGE_RATES_URL=
LOG_LEVEL=error
`

function environment(folder: string): Record<string, string> {
  return {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: folder,
    LANG: 'C.UTF-8',
  }
}

async function read(stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += chunk
  return text
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has already exited.
  }
}

function lastJson(output: string, report: string): unknown {
  const line = output.split('\n').findLast((text) => /^[{[]/.test(text))
  assert(line !== undefined, report)
  return JSON.parse(line)
}

/** Both have the same fields with values of the same type. "…" matches anything, and a list shows one of its entries. */
function assertSameShape(documented: unknown, actual: unknown, report: string): void {
  if (documented === null || actual === null || documented === '…') return
  assert.equal(typeof actual, typeof documented, report)
  if (typeof documented !== 'object' || typeof actual !== 'object') return
  if (Array.isArray(documented)) {
    assert(Array.isArray(actual), report)
    for (const entry of actual) assertSameShape(documented[0], entry, report)
    return
  }
  if ('…' in documented) return
  assert.deepEqual(Object.keys(actual).sort(), Object.keys(documented).sort(), report)
  for (const [name, value] of Object.entries(documented))
    assertSameShape(value, (actual as Record<string, unknown>)[name], report)
}
