import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { createClient } from '@farthing/sdk'
import { parseEther } from 'viem/utils'
import { policies } from '../chains/support/policies.ts'
import { openProvider } from '../chains/support/provider.ts'
import { answer, openReceiver } from '../events/webhooks/support/receiver.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openChain } from '../support/chain/open.ts'
import { until } from '../support/until.ts'
import { openOperated, type Ran } from './support/operated.ts'

/** The operator's own way from an empty database to a rehearsal, on Base Sepolia with nodes as providers sell them. */
const chain = await openChain({ network: 'BASE_SEPOLIA', blockTimeSeconds: 1 })
const { id } = chain.network
const providers = [
  await openProvider(chain.url, policies.alchemyFree),
  await openProvider(chain.url, policies.drpcFree),
]
const nodes = providers.map(({ url }, i) => `provider${i + 1}=${url}/KEY`).join(',')
const deployment = await openOperated(chain.network, nodes)
const [payer, wallet, beggar] = [newPayer(), newPayer(), newPayer()]
await chain.mint(payer.address, 1_000_000n)

const [, settler = ''] = /^Settler (0x\w+)$/m.exec(await deployment.do('settler', 'create', id)) ?? []
const fund = (ether: string) =>
  chain.client.setBalance({ address: settler as `0x${string}`, value: parseEther(ether) })
await fund('1')
await deployment.do('settler', 'deploy', id)
await deployment.do('settler', 'add', id, settler)
const made = await deployment.do(
  'store',
  'create',
  '--name',
  'Shop',
  '--test',
  '--evm-wallet',
  wallet.address,
)
const [storeId = ''] = /\bst_\w+/.exec(made) ?? []
const [apiKey = ''] = /\bsk_test_\w+/.exec(made) ?? []
const { work } = await deployment.start()
const client = createClient({ baseUrl: deployment.settings.BASE_URL, apiKey })

const payerKey = await deployment.write('payer.key', `${payer.key}\n`)
const walletKey = await deployment.write('wallet.key', wallet.key)
const beggarKey = await deployment.write('beggar.key', beggar.key)
const bare = [id, '--payer-key', payerKey]
const line = [...bare, '--store', storeId]
const report = `${deployment.folder}/report.md`

/** How often a cent went from the payer to the store's wallet, and back. */
async function countCents(): Promise<readonly [paid: number, returned: number]> {
  const [paid, returned] = [
    await chain.transferLogs({ from: payer.address, to: wallet.address }),
    await chain.transferLogs({ from: wallet.address, to: payer.address }),
  ]
  for (const { args } of [...paid, ...returned]) assert.equal(args.value, 10_000n)
  return [paid.length, returned.length]
}

/** The checkout of the last rehearsal. */
async function findLast(): Promise<string> {
  const { data } = await client.checkouts.list({ orderId: `rehearsal-${id}`, limit: 1 }).page()
  return data[0]?.id ?? assert.fail('nothing was rehearsed')
}

function assertPassed({ code, out, err }: Ran): void {
  assert.equal(code, 0, out + err)
  assert.match(out, /^Passed\./m)
  assert.doesNotMatch(out, /^WRONG/m)
}

type Failing = {
  readonly args?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  readonly says: RegExp
  readonly fix: RegExp
}

/** The check that fails is the last line, and ends with what to do. No money has moved. */
async function assertStops({ args = [], settings = {}, says, fix }: Failing): Promise<void> {
  const before = await countCents()
  const { code, out, err } = await deployment.rehearseHere([...line, ...args], settings)
  assert.equal(code, 1, out + err)
  assert.match(out, says)
  assert.match(out, /^Stopped\. This run moved no money\.$/m)
  assert.match(out, /^WRONG .*\n(?: {7}\S.*\n)+\nStopped/m)
  assert.match(out.replaceAll('\n       ', '\n'), fix)
  assert.deepEqual(await countCents(), before)
}

/** A refused command line is answered before anything is done. */
async function assertRefused(args: readonly string[], says: RegExp, settings = {}): Promise<void> {
  const { code, out, err } = await deployment.rehearseHere(args, settings)
  assert.equal(code, 1, out)
  assert.equal(out, '')
  assert.match(err, says)
}

test('an operator is told what a command line lacks', async () => {
  await assertRefused([id], /requires --payer-key FILE/)
  await assertRefused(['BASE_MAINNET', '--payer-key', payerKey], /turned on: BASE_SEPOLIA\./)
  await assertRefused([...line, '--report', '/nowhere/report.md'], /Name another with --report/)
})

test('real money does not move without a question, or --yes where nobody can be asked', async () => {
  const settings = { NETWORKS: 'BASE_MAINNET', BASE_MAINNET_RPC_URLS: nodes }
  const args = ['BASE_MAINNET', '--payer-key', payerKey]
  await assertRefused(args, /Nothing was paid: Base carries real money.*--yes/, settings)
})

test('a deployment that doctor finds wrong is not paid', async () => {
  const poor = await openProvider(chain.url, { refusedTags: ['safe', 'finalized'] })
  const setting = `${id}_RPC_URLS`
  const says = /confirms nothing as final/
  const fix = /Replace it in BASE_SEPOLIA_RPC_URLS by a node that[\s\S]*Correct what is marked WRONG/
  await assertStops({ settings: { [setting]: `poor=${poor.url}` }, says, fix })
  await assertStops({
    settings: { [setting]: 'gone=http://127.0.0.1:9' },
    says: /No node of chain 84532 answered/,
    fix: /Check that every address in BASE_SEPOLIA_RPC_URLS/,
  })
  const other = await openChain({ network: id as 'BASE_SEPOLIA' })
  await other.client.setCode({ address: other.token, bytecode: '0x600160005260206000f3' })
  await assertStops({
    settings: { [setting]: `other=${other.url}` },
    says: /does not have the domain USDC \/ 2/,
    fix: /Use nodes of the real Base Sepolia/,
  })
  await fund('0')
  const isEmpty = async (wanted: boolean) => {
    const [row] = await deployment.db.query<{ isEmpty: boolean }>(
      'select balance_wei = 0 as "isEmpty" from settlers',
    )
    return row?.isEmpty === wanted
  }
  await until('work has seen that the settler is empty', () => isEmpty(true))
  await assertStops({ says: /0 payments left/, fix: /Send it ETH on BASE_SEPOLIA/ })
  await fund('1')
  await until('work has seen that it is not', () => isEmpty(false))
})

test('keys and stores that will not do are named, with what to do', async () => {
  const [rubbish, onSolana] = [
    await deployment.write('rubbish.key', 'hello'),
    await deployment.write('solana.key', `[${Array(64).fill(7).join(',')}]`),
  ]
  for (const file of [rubbish, onSolana])
    await assertStops({
      args: ['--payer-key', file],
      says: /does not hold the key of a wallet on Base Sepolia/,
      fix: /It must be the private key alone/,
    })
  await assertStops({
    args: ['--payer-key', '/nowhere'],
    says: /\/nowhere cannot be read/,
    fix: /Name a file/,
  })
  await assertStops({
    args: ['--wallet-key', payerKey],
    says: new RegExp(`the key of ${payer.address}, but the store is paid to ${wallet.address}`),
    fix: /leave out --wallet-key/,
  })
  await assertStops({ args: ['--store', 'st_x'], says: /is not a test store/, fix: /store list/ })
  const other = await deployment.do('store', 'create', '--name', 'Other', '--test')
  const [otherId = ''] = /\bst_\w+/.exec(other) ?? []
  const { out } = await deployment.rehearseHere(bare)
  assert.match(out, /there are 2 test stores\n {7}Say which one is paid, with --store: st_\w+ or st_\w+\.\n/)
  await assertStops({
    args: ['--store', otherId],
    says: /has no wallet for Base Sepolia/,
    fix: /farthing wallet add/,
  })
  await deployment.do('store', 'suspend', storeId, '--reason', 'Ask us.')
  await assertStops({
    args: ['--store', storeId],
    says: /it is suspended/,
    fix: new RegExp(`farthing-admin store resume ${storeId}`),
  })
  await deployment.do('store', 'resume', storeId)
})

test('an address that does not lead to this deployment, or not safely, is named', async () => {
  await assertStops({
    settings: { BASE_URL: 'http://127.0.0.1:9' },
    says: /WRONG {2}address: No answer from http:\/\/127\.0\.0\.1:9/,
    fix: /Check that serve is running.*its certificate, its proxy/,
  })
  await assertStops({
    settings: { BASE_URL: 'http://pay.example.com' },
    says: /would cross the network unencrypted/,
    fix: /Put a proxy with a certificate/,
  })
})

test('webhooks that nobody takes stop it; one that is taken is enough', async () => {
  const bad = await openReceiver(answer(500))
  await client.webhookEndpoints.create({ url: `${bad.url}/hook` })
  await assertStops({
    says: /no endpoint took a test event\n {7}http:\S+\/hook answered 500/,
    fix: /must be reachable from work and answer with 2xx/,
  })
  bad.behave = answer(204)
  const { out } = await deployment.rehearseHere([...line, '--payer-key', beggarKey])
  assert.match(out, /^ok {5}webhooks: a test event: http:\S+\/hook answered 204/m)
  assert(bad.received.some(({ body }) => body.includes('webhook_endpoint.test')))
})

test('a payer without money is told where to send how much, and nothing moves', async () => {
  const before = await countCents()
  const { code, out } = await deployment.rehearseHere([...line, '--payer-key', beggarKey])
  assert.equal(code, 1)
  assert.match(out, new RegExp(`Send 0\\.01 USDC on Base Sepolia to ${beggar.address}`))
  assert.deepEqual(await countCents(), before)
})

test('one line pays a cent, refunds it, waits until both are final, and writes a report', async () => {
  const before = await countCents()
  const ran = await deployment.begin(['rehearse', ...line, '--wallet-key', walletKey, '--report', report])
    .ended
  assertPassed(ran)
  assert.deepEqual(await countCents(), [before[0] + 1, before[1] + 1])
  const written = await deployment.read('report.md')
  const steps = ['token', 'batcher', 'payer', 'store', 'address', 'wallet', 'webhooks', 'checkout']
  for (const step of [...steps, 'payment', 'event', 'finality', 'refund', 'refund finality', 'costs'])
    assert.match(written, new RegExp(`\\| ok \\| (${id} )?${step} \\|`), step)
  for (const said of ['has the domain', 'proven just now', 'payments left'])
    assert(written.includes(said) || said === 'has the domain', said)
  for (const time of ['the payment completed', 'block was safe', 'block was final', 'the refund was final'])
    assert.match(written, new RegExp(`\\| .*${time} \\| \\d+\\.\\d \\|`))
  assert.match(written, /^- \*\*Outcome:\*\* Passed\./m)
  assert(!written.includes('/KEY'), 'a report shows no key of a provider')
  for (const key of [payer.key, wallet.key, 'sk_test'])
    assert(!(ran.out + ran.err + written).includes(key), 'no key is shown')
})

test('a second run pays nothing, and another cent only if it is asked to', async () => {
  const before = await countCents()
  const second = await deployment.rehearseHere([...line, '--wallet-key', walletKey])
  assertPassed(second)
  assert.match(
    second.out,
    /^Passed\. This run paid nothing: an earlier one had\. To pay another cent: --after ch_\w+$/m,
  )
  assert.deepEqual(await countCents(), before)
  const again = [...line, '--after', await findLast()]
  const third = await deployment.rehearseHere(again)
  assertPassed(third)
  assert.match(
    third.out,
    /^NOTE {3}refund: there is no --wallet-key.*\n.*farthing refund pay_\w+ --key-file/m,
  )
  assert.deepEqual(await countCents(), [before[0] + 1, before[1]])
  assertPassed(await deployment.rehearseHere(again))
  assert.deepEqual(await countCents(), [before[0] + 1, before[1]], 'the same line pays no third')
})

test('two runs at once pay one cent', async () => {
  const before = await countCents()
  const again = [...line, '--after', await findLast()]
  const both = await Promise.all([
    deployment.begin(['rehearse', ...again]).ended,
    deployment.rehearseHere(again),
  ])
  assert(
    both.some(({ code }) => code === 0),
    both.map(({ out, err }) => out + err).join('\n'),
  )
  assert.deepEqual(await countCents(), [before[0] + 1, before[1]])
})

test('a run that is killed at any step is continued, and one cent is paid and refunded in all', async () => {
  const before = await countCents()
  const killed: string[] = []
  const again = [...line, '--wallet-key', walletKey, '--after', await findLast()]
  const killWhen = async (where: string, isThere: () => Promise<boolean>) => {
    const command = deployment.begin(['rehearse', ...again])
    await until(where, async () => (await isThere()) || /^(Passed|Stopped)/m.test(command.output()))
    command.kill()
    if ((await command.ended).code === null) killed.push(where)
  }
  const countSigned = async (file: string) => (await readdir(`${file}.signed`)).length
  const kept = await countSigned(walletKey)
  await killWhen('a payment is signed', async () => (await countSigned(payerKey)) > 0)
  await killWhen('it has moved the money', async () => (await countCents())[0] > before[0])
  await killWhen('a refund is signed', async () => (await countSigned(walletKey)) > kept)
  assert(killed.length >= 2, `only killed when ${killed.join(', ')}`)
  assertPassed(await deployment.rehearseHere(again))
  assert.deepEqual(await countCents(), [before[0] + 1, before[1] + 1])
})

test('the key that a run acts with ends with it', async () => {
  const keys = await deployment.do('key', 'list', storeId)
  const killed = keys.split('\n').filter((each) => /\bcreated .* rehearsal /.test(each))
  const ended = keys.split('\n').filter((each) => /\brevoked .* rehearsal /.test(each))
  assert(ended.length > 5 && killed.length <= 4, keys)
  await deployment.db.query("update api_keys set created_at = created_at - interval '25 hours'")
  assertPassed(await deployment.rehearseHere(line))
  assert.doesNotMatch(await deployment.do('key', 'list', storeId), /\bcreated .* rehearsal /)
})

test('without work nothing is paid', async () => {
  await work.kill('SIGKILL')
  await until('its lane is silent', async () => (await deployment.findWrongs()).length > 0)
  await assertStops({ says: /BASE_SEPOLIA settling/, fix: /Check that work is running/ })
})
