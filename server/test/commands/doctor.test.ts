import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parseEther } from 'viem/utils'
import { batcher } from '../../src/chains/evm/batcher.ts'
import { openSigner } from '../../src/chains/evm/signer.ts'
import { examine } from '../../src/commands/doctor.ts'
import { parseNode } from '../../src/config/parse.ts'
import type { Config } from '../../src/config/settings.ts'
import type { Context } from '../../src/context.ts'
import { type Database, openDatabase } from '../../src/database/db.ts'
import type { Finding } from '../../src/http/console/operator/view.ts'
import { openProvider } from '../chains/support/provider.ts'
import { atEnd } from '../support/at-end.ts'
import { fundedKey } from '../support/chain/evm.ts'
import { openChain } from '../support/chain/open.ts'
import { freshDatabase, urlAs } from '../support/database.ts'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'

/** Each test breaks one part of a working deployment and checks what doctor tells the operator. */
const shop = await openShop()
const signer = openSigner(fundedKey(1))
const main = new URL('../../src/main.ts', import.meta.url).pathname

async function wrongs(
  changes: { config?: Partial<Config>; ctx?: Partial<Context> } = {},
): Promise<Finding[]> {
  const config = { ...shop.ctx.config, settlerKeysFile: '/settler-keys', ...changes.config }
  const findings = await examine({ ...shop.ctx, ...changes.ctx, config }, async () => [signer])
  return findings.filter(({ fix }) => fix !== null)
}

async function assertOnly(found: Promise<Finding[]>, what: string, says: RegExp, fix: RegExp): Promise<void> {
  const [finding, ...rest] = await found
  assert.deepEqual(rest, [])
  assert.equal(finding?.what, what)
  assert.match(finding.says, says)
  assert.match(finding.fix ?? '', fix)
}

function open(url: string) {
  const db = openDatabase({ url, connections: 4, name: 'test-doctor' })
  atEnd(() => db.close())
  return db
}

test('doctor finds nothing wrong with a working deployment', async () => {
  assert.deepEqual(await wrongs(), [])
})

test('a database that cannot be reached is reported', async () => {
  const db = open('postgres://nobody@127.0.0.1:9/none')
  await assertOnly(wrongs({ ctx: { db } }), 'database', /cannot be reached.*ECONNREFUSED/, /DATABASE_URL/)
})

test('a missing schema is reported', async () => {
  const url = new URL(shop.databaseUrl)
  url.pathname = '/postgres'
  await assertOnly(wrongs({ ctx: { db: open(url.href) } }), 'schema', /lacks 0001/, /farthing-admin migrate/)
})

test('a schema that migrating would not repair is reported with what does', async () => {
  const { url } = await freshDatabase()
  const db = open(url)
  await db.query("update schema_migrations set sql = sql || ' ' where version = 1")
  await assertOnly(wrongs({ ctx: { db } }), 'schema', /^0001\S+ differs from/, /restore that file/)
  await db.query('update schema_migrations set sql = left(sql, -1) where version = 1')
  await db.query(
    "insert into schema_migrations (version, name, sql, breaking) values (9999, '9999_new.sql', '', true)",
  )
  await assertOnly(wrongs({ ctx: { db } }), 'schema', /has 9999_new\.sql/, /^Upgrade first/)
})

test('clocks that differ are reported', async () => {
  const now = () => new Date(Date.now() + 60_000)
  const [finding] = await wrongs({ ctx: { now } })
  assert.equal(finding?.what, 'clocks')
  assert.match(finding.fix ?? '', /NTP/)
})

test('a database without a store or settler is reported', async () => {
  const { url } = await freshDatabase()
  const found = await wrongs({ ctx: { db: open(url) } })
  assert.deepEqual(
    found.map(({ what }) => what),
    ['stores', 'LOCAL settlers'],
  )
  assert.match(found[0]?.fix ?? '', /store create/)
  assert.match(found[1]?.fix ?? '', /settler add LOCAL/)
})

test('a process that connects as a role with more rights than it needs is reported on live networks', async () => {
  const rolesFound = async (networks = ['BASE_MAINNET']) => {
    const findings = await examine({ ...shop.ctx, config: { ...shop.ctx.config, networks } }, async () => [])
    return findings.filter(({ what }) => what === 'database roles')
  }
  const opened: Database[] = []
  const connect = async (url: string, name: string) => {
    const db = openDatabase({ url, connections: 4, name })
    opened.push(db)
    await db.query('select 1 as one')
  }
  assert.deepEqual(await rolesFound(), [])
  await connect(urlAs('serve', shop.databaseUrl), 'farthing-serve')
  assert.deepEqual(await rolesFound(), [
    { what: 'database roles', says: 'each process has its own', fix: null },
  ])
  await connect(urlAs('operator', shop.databaseUrl), 'farthing-work')
  const [finding] = await rolesFound()
  assert.match(finding?.says ?? '', /^work connects as farthing_operator/)
  assert.match(finding?.fix ?? '', /farthing_work/)
  await connect(shop.databaseUrl, 'farthing-console')
  assert.match((await rolesFound())[0]?.says ?? '', /^console connects as farthing,/)
  assert.deepEqual(await rolesFound(['LOCAL']), [])
  await Promise.all(opened.map((db) => db.close()))
  await until('PostgreSQL has noticed that they are gone', async () => (await rolesFound()).length === 0)
})

test('rates that nobody fetches are reported', async () => {
  const config = { ecbRatesUrl: 'http://127.0.0.1:9/' }
  await assertOnly(wrongs({ config }), 'rates', /1 currency/, /ECB_RATES_URL/)
})

test('a network without nodes is reported', async () => {
  await assertOnly(wrongs({ config: { nodes: {} } }), 'LOCAL', /no nodes/, /LOCAL_RPC_URLS/)
})

test('the simulated network lacks nothing, because it needs no node and no settler', async () => {
  assert.deepEqual(await wrongs({ config: { networks: ['LOCAL', 'SIMULATED'] } }), [])
})

test('a node that cannot be reached is reported', async () => {
  const nodes = { LOCAL: [shop.chain.url, 'http://127.0.0.1:9/'].map(parseNode) }
  await assertOnly(wrongs({ config: { nodes } }), 'LOCAL nodes', /1 of 2 answer/, /can be reached/)
})

test('a provider by which nothing becomes final, or that is no witness, is reported by name', async () => {
  for (const [policy, says] of [
    [{ refusedTags: ['safe', 'finalized'] }, /tag safe and finalized, so it confirms nothing as final/],
    [{ headerLacks: ['logsBloom'] }, /headers lack logsBloom, so .* no witness/],
  ] as const) {
    const { url } = await openProvider(shop.chain.url, policy)
    const nodes = { LOCAL: [`good=${shop.chain.url}`, `poor=${url}/KEY`].map(parseNode) }
    const fix = /^Replace it in LOCAL_RPC_URLS by a node that /
    await assertOnly(wrongs({ config: { nodes } }), `LOCAL node poor (${new URL(url).host})`, says, fix)
  }
})

test('a node of another chain is reported', async () => {
  const other = await openChain({ network: 'BASE_SEPOLIA' })
  const nodes = { LOCAL: [parseNode(other.url)] }
  await assertOnly(wrongs({ config: { nodes } }), 'LOCAL nodes', /is on chain 0x14a34/, /is a node of/)
})

test('fewer nodes than a network needs are reported', async () => {
  const chain = await openChain({ network: 'BASE_MAINNET' })
  const config = { networks: ['BASE_MAINNET'], nodes: { BASE_MAINNET: [parseNode(chain.url)] } }
  await assertOnly(
    wrongs({ config }),
    'BASE_MAINNET nodes',
    /1 of 1/,
    /at least 2 providers in BASE_MAINNET_RPC_URLS/,
  )
})

test('a token with another EIP-712 domain or other decimals is reported', async () => {
  const chain = await openChain({ network: 'LOCAL' })
  await chain.client.setCode({ address: chain.token, bytecode: '0x600160005260206000f3' })
  const found = await wrongs({ config: { nodes: { LOCAL: [parseNode(chain.url)] } } })
  assert.match(found[0]?.says ?? '', /does not have the domain/)
  assert.match(found[1]?.says ?? '', /does not have 6 decimals/)
})

test('a live network without the batcher is reported, with the command that deploys it', async () => {
  const { client, url } = await openChain({ network: 'BASE_MAINNET' })
  await client.setCode({ address: batcher, bytecode: '0x' })
  const found = await wrongs({
    config: {
      networks: ['BASE_MAINNET'],
      nodes: { BASE_MAINNET: [`one=${url}`, `two=${url}`].map(parseNode) },
    },
  })
  assert.equal(found[0]?.what, 'BASE_MAINNET')
  assert.match(found[0].says, /batcher is not deployed/)
  assert.match(found[0].fix ?? '', /settler deploy BASE_MAINNET/)
})

test('how many calls it takes to follow a public network is said, and nothing of a local one', async () => {
  const { url } = await openChain({ network: 'BASE_MAINNET' })
  const config = {
    ...shop.ctx.config,
    networks: ['LOCAL', 'BASE_MAINNET'],
    nodes: { ...shop.ctx.config.nodes, BASE_MAINNET: [`one=${url}`, `two=${url}`].map(parseNode) },
  }
  const findings = await examine({ ...shop.ctx, config }, async () => [signer])
  const calls = findings.filter(({ what }) => what.endsWith(' calls'))
  assert.deepEqual(
    calls.map(({ what, fix }) => [what, fix]),
    [['BASE_MAINNET calls', null]],
  )
  assert.match(calls[0]?.says ?? '', /^about [\d,]+ a month to each provider while nobody pays/)
})

test('a settler whose key is missing is reported', async () => {
  const found = await examine(
    { ...shop.ctx, config: { ...shop.ctx.config, settlerKeysFile: '/settler-keys' } },
    async () => [openSigner(fundedKey(7))],
  )
  const [finding] = found.filter(({ fix }) => fix !== null)
  assert.match(finding?.says ?? '', new RegExp(`the key of ${signer.address} is missing`, 'i'))
})

test('the doctor command reports a settler without money and a work that is not running, and exits with 1', async () => {
  await shop.stopWork()
  await shop.ctx.db.query('update settlers set balance_wei = 1')
  const env = {
    DATABASE_URL: shop.databaseUrl,
    BASE_URL: 'https://farthing.example',
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: shop.chain.url,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }
  const run = promisify(execFile)(process.execPath, [main, 'doctor'], { env })
  const { code, stdout } = await run.then(
    () => assert.fail('doctor found nothing wrong'),
    (error: { code: number; stdout: string }) => error,
  )
  assert.equal(code, 1)
  assert.match(stdout, /^ok {5}database: PostgreSQL/m)
  assert.match(
    stdout,
    /^WRONG {2}LOCAL settlers: 0x[0-9a-f]{40}: .*0 payments left, because none is accepted below [\d.]+ ETH, .*\n {7}Send it ETH on LOCAL\.$/im,
  )
  assert.match(stdout, /^WRONG {2}LOCAL settling: .*\n {7}Check that work is running/m)
})

test('gas is reported as wrong only if it lasts for less than a day, or nothing is accepted', async () => {
  await shop.stopWork()
  const { db } = shop.ctx
  const hold = async (ether: string, baseFee: bigint) => {
    await db.query('update followers set base_fee = $1', [baseFee])
    await db.query('update settlers set balance_wei = $1, data_fee_wei = 0', [parseEther(ether)])
    const [found] = (await examine(shop.ctx, async () => [])).filter(({ what }) => what === 'LOCAL settlers')
    return found ?? assert.fail()
  }
  const send = 'Send it ETH on LOCAL.'
  await db.query('delete from settler_gas')
  const recommended = await hold('0.002', 5_000_000n)
  assert.equal(recommended.fix, null, 'what deploying.md tells to begin with')
  assert.match(recommended.says, /nothing settled in the last day, 3\d{3} payments left$/)
  const faucet = await hold('0.0001', 5_000_000n)
  assert.equal(faucet.fix, send)
  assert.match(
    faucet.says,
    /holds 0\.0001 ETH: 0 payments left, because none is accepted below 0\.0001\d+ ETH/,
  )
  const spike = await hold('0.002', 10n ** 12n)
  assert.equal(spike.fix, 'Wait until fees fall.')
  assert.match(spike.says, /fees are above the limit/)

  const [{ address } = assert.fail()] = shop.signers
  const spend = async (ether: string) =>
    await db.query(
      `insert into settler_gas (network, settler, hour, spent, payments, failures)
       values ($1, $2, date_trunc('hour', clock()), $3, 10, 0)
       on conflict (network, settler, hour) do update set spent = $3`,
      [shop.chain.network.caip2, address, parseEther(ether)],
    )
  await spend('0.0002')
  const slow = await hold('0.002', 5_000_000n)
  assert.equal(slow.fix, null, 'few payments, but for more than a week')
  assert.match(slow.says, /\d\d payments left, 2\d\d hours at the last day’s rate$/)
  await spend('0.01')
  assert.equal((await hold('0.002', 5_000_000n)).fix, send)
})
