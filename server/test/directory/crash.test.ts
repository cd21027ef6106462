/** A process that dies at any step of becoming an owner leaves nothing that the repeat cannot finish. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { settlerCommand } from '../../src/commands/operator.ts'
import { openEvm } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { startProcess } from '../support/process.ts'
import { openStore } from '../support/store.ts'
import { openCell, openDirectory, register, sign } from './support/cells.ts'

const chain = await openEvm()
const directory = await openDirectory()
const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: chain.url }
const cell = await openCell(directory.url, '0a', settings)
const main = new URL('../../src/main.ts', import.meta.url).pathname

/** How many owners there are, and whether the wallet or settler is in use, after the death. */
const steps = [
  ['hold-before', 0, false],
  ['hold-after', 1, false],
  ['hold-before-commit', 1, false],
  ['hold-after-commit', 1, true],
] as const

for (const [crashAt, owners, isUsed] of steps) {
  test(`killed at ${crashAt}, a proof can be repeated`, async () => {
    const serve = await startProcess('serve', {
      ...settings,
      CELL: '0a',
      DATABASE_URL: cell.databaseUrl,
      DIRECTORY_URL: directory.url,
      CRASH_AT: crashAt,
    })
    const shop = await openStore(cell, { mode: 'test', evmWallet: null })
    const holder = newPayer()
    const asked = (await register(shop, holder.address)).json<Wallet>()
    const signature = await sign(shop, asked, holder)
    const path = `/api/v1/stores/${shop.id}/wallets/${asked.id}/prove`
    const dead = once(serve.child, 'exit')
    await assert.rejects(
      fetch(`${serve.started.address}${path}`, {
        method: 'POST',
        headers: { 'x-api-key': shop.key, 'content-type': 'application/json' },
        body: JSON.stringify({ signature }),
      }),
    )
    assert.deepEqual(await dead, [null, 'SIGKILL'])
    const found = await directory.db.query('select 1 from owners where address = $1', [
      holder.address.toLowerCase(),
    ])
    assert.equal(found.length, owners)
    const repeat = await shop.call('POST', path, { signature })
    assert.equal(repeat.statusCode, isUsed ? 422 : 200, repeat.body)
    assert.equal((await register(shop, holder.address)).json<Wallet>().current, true)
  })
}

for (const [crashAt, owners, isUsed] of steps) {
  test(`killed at ${crashAt}, \`settler add\` can be repeated`, async () => {
    const account = newPayer().address
    const adding = spawn(process.execPath, [main, 'settler', 'add', 'LOCAL', account], {
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH ?? '',
        BASE_URL: 'https://farthing.example',
        ...settings,
        CELL: '0a',
        DATABASE_URL: cell.databaseUrl,
        DIRECTORY_URL: directory.url,
        CRASH_AT: crashAt,
      },
    })
    assert.deepEqual(await once(adding, 'exit'), [null, 'SIGKILL'])
    const [owned, settlers] = await Promise.all([
      directory.db.query('select 1 from owners where address = $1', [account.toLowerCase()]),
      cell.ctx.db.query('select 1 from settlers where address = $1', [account.toLowerCase()]),
    ])
    assert.deepEqual([owned.length, settlers.length], [owners, isUsed ? 1 : 0])
    const repeat = await settlerCommand(cell.ctx, ['add', 'LOCAL', account], {}, async () => [])
    assert.match(repeat, isUsed ? /already a settler/ : /now settles/)
  })
}
