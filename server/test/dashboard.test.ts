/**
 * A real Prometheus scrapes a deployment on which a payment was made, and evaluates every expression of the dashboard:
 * none may be empty. Grafana itself is not run.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createClient } from '@farthing/sdk'
import { pay } from '@farthing/sdk/pay'
import { privateKeyToAccount } from 'viem/accounts'
import { parse, stringify } from 'yaml'
import { openSigner } from '../src/chains/evm/signer.ts'
import { insertSettler } from '../src/payments/settlers/rows.ts'
import { makeStore, openTestApp } from './support/app.ts'
import { atEnd } from './support/at-end.ts'
import { fundedKey } from './support/chain/evm.ts'
import { newPayer } from './support/chain/evm-payment.ts'
import { openChain } from './support/chain/open.ts'
import { freePort } from './support/free-port.ts'
import { startProcess } from './support/process.ts'
import { until } from './support/until.ts'

const root = new URL('../../', import.meta.url).pathname
const folder = await mkdtemp(join(tmpdir(), 'farthing-prometheus-'))
atEnd(() => rm(folder, { recursive: true, force: true }))
const read = (file: string) => readFile(join(root, 'ops', file), 'utf8')

/** Receives webhooks, and serves exchange rates. */
async function startOutside(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    const rates = { EUR: '0.86', GBP: '0.75', JPY: '155', CHF: '0.8', CAD: '1.4' }
    response.end(JSON.stringify({ data: { currency: 'USD', rates } }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function startDeployment() {
  const [chain, outside, port] = await Promise.all([
    openChain({ blockTimeSeconds: 1 }),
    startOutside(),
    freePort(),
  ])
  const url = `http://127.0.0.1:${port}`
  const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: `node-1=${chain.url}`, BASE_URL: url }
  const { ctx, databaseUrl } = await openTestApp(settings)
  const settler = fundedKey(1)
  await insertSettler(ctx.db, chain.network.caip2, openSigner(settler).address, 0)
  const { key } = await makeStore(ctx, { mode: 'test' })
  await writeFile(join(folder, 'settler.keys'), settler)
  const environment = {
    ...settings,
    DATABASE_URL: databaseUrl,
    EXCHANGE_RATES_URL: outside,
    ECB_RATES_URL: '',
  }
  const [serve, work] = await Promise.all([
    startProcess('serve', { ...environment, PORT: `${port}` }),
    startProcess('work', { ...environment, SETTLER_KEYS_FILE: join(folder, 'settler.keys') }),
  ])
  return { chain, outside, url, key, ports: [serve, work].map(({ started }) => started.operationsPort) }
}

/** The configuration that operators get, with this deployment's ports and scrapes every second. */
async function startPrometheus(ports: readonly number[]): Promise<string> {
  const config = parse(await read('prometheus/prometheus.yml'))
  config.global = { scrape_interval: '1s', evaluation_interval: '1s' }
  for (const [i, job] of config.scrape_configs.entries())
    job.static_configs = [{ targets: [`127.0.0.1:${ports[i]}`] }]
  await writeFile(join(folder, 'prometheus.yml'), stringify(config))
  await writeFile(join(folder, 'alerts.yml'), await read('prometheus/alerts.yml'))
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: 'ignore' },
  )
  atEnd(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  return `http://${address}`
}

type Answer = { readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] } }

async function evaluate(prometheus: string, expression: string): Promise<string[]> {
  const answer = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(expression)}`)
  const body = await answer.text()
  assert.equal(answer.status, 200, `${expression}: ${body}`)
  return (JSON.parse(body) as Answer).data.result.map(({ value }) => value[1])
}

test('every expression of the dashboard has a value on a deployment with a payment, and no alert fires', async () => {
  const { chain, outside, url, key, ports } = await startDeployment()
  const prometheus = await startPrometheus(ports)
  const client = createClient({ baseUrl: url, apiKey: key })
  await client.webhookEndpoints.create({ url: outside })
  const payer = newPayer()
  await chain.mint(payer.address, 100_000_000n)
  await fetch(`${url}/api/v1/checkouts/none`)
  const isUp = async () => (await evaluate(prometheus, 'sum(up)').catch(() => []))[0] === '2'
  await until('both processes are scraped', isUp)
  const canSettle = async () => (await evaluate(prometheus, 'farthing_can_settle'))[0] === '1'
  await until('payments can be settled', canSettle)
  const { panels } = JSON.parse(await read('grafana/farthing.json')) as {
    panels: readonly { title: string; targets?: readonly { expr: string }[] }[]
  }
  const targets = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
  assert(targets.length > 25)
  let empty: string[] = []
  let orders = 0
  await until('every panel has a value', async () => {
    const checkout = await client.checkouts.create({
      orderId: `order-${++orders}`,
      priceAmount: '0.50',
      priceCurrency: 'USD',
    })
    const paid = await pay(checkout.checkoutUrl, privateKeyToAccount(payer.key), { max: '1.00' })
    assert.equal(paid.outcome, 'paid')
    const values = await Promise.all(
      targets.map(async ({ title, expr }) => {
        const found = await evaluate(prometheus, expr.replaceAll('$__rate_interval', '30s'))
        return found.some((value) => value !== 'NaN') ? [] : title
      }),
    )
    empty = values.flat()
    return empty.length === 0
  }).catch((error) => assert.fail(`${error.message}: ${empty.join(', ')}`))
  assert.deepEqual(await evaluate(prometheus, 'ALERTS{alertname!="FarthingSettlerLow"}'), [])
})
