import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { openPaidSvmStore } from '../../sdk/test/support/shops.ts'
import { atEnd } from '../../server/test/support/at-end.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const shop = await openPaidSvmStore()
const state = await mkdtemp(join(tmpdir(), 'farthing-cli-'))
atEnd(() => rm(state, { recursive: true }))

test('pay works on Solana with a base58 key from a wallet and with the numbers of a key file', async () => {
  const { address, secret, base58 } = await shop.newKey()
  for (const key of [base58, `[${secret}]`]) {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [main, 'pay', await shop.checkoutUrl('0.50'), '--yes', '--text'],
      { env: { FARTHING_PRIVATE_KEY: key, XDG_STATE_HOME: state } },
    )
    for (const shown of ['0.50 USDC on Local Solana chain', address, '✔ Paid'])
      assert(stdout.includes(shown), stdout)
  }
  assert.equal(await shop.balance(address), 9_000_000n)
})
