import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openPaidStore } from '../../sdk/test/support/shops.ts'
import { atEnd } from '../../server/test/support/at-end.ts'

const folder = await mkdtemp(join(tmpdir(), 'farthing-agent-'))
atEnd(() => rm(folder, { recursive: true }))
const keysFile = join(folder, 'receipt-keys.pem')
await writeFile(keysFile, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))
const shop = await openPaidStore({ settings: { RECEIPT_KEYS_FILE: keysFile } })

async function run(program: string, checkoutUrl: string, key: string) {
  const file = new URL(program, import.meta.url).pathname
  const child = spawn(process.execPath, [file, checkoutUrl], { env: { FARTHING_PRIVATE_KEY: key } })
  let out = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      out += chunk
    })
  const [code] = await once(child, 'close')
  return { code, out }
}

const receipts = { 'ours.ts': `receipt signed by ${new URL(shop.baseUrl).host}\n`, 'stock.ts': '' }

for (const program of ['ours.ts', 'stock.ts'] as const) {
  test(`${program} pays a checkout once, however often it is run, and never pays above its limit`, async () => {
    const payer = await shop.fund()
    const order = { orderId: 'order-1', priceCurrency: 'USD' }
    const { checkoutUrl, id } = await shop.client.checkouts.create({ ...order, priceAmount: '4.20' })
    const first = await run(program, checkoutUrl, payer.key)
    assert.equal(first.code, 0, first.out)
    const { status, payment } = await shop.client.checkouts.get(id)
    assert.equal(status, 'COMPLETED')
    assert.equal(first.out, `paid in ${payment?.transaction}\n${receipts[program]}`)
    assert.deepEqual(await run(program, checkoutUrl, payer.key), first)

    const dear = await shop.client.checkouts.create({ ...order, priceAmount: '5.01' })
    assert.equal((await run(program, dear.checkoutUrl, payer.key)).code, 1)
    const logs = await shop.chain.transferLogs({ from: payer.address })
    assert.deepEqual(
      logs.map(({ args }) => args.value),
      [4_200_000n],
    )
  })
}
