import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type Address, type Hex, keccak256, slice, toBytes } from 'viem'
import { signaturesAddress, type TokenPlacement } from '../../src/dev/placement.ts'
import { openToken } from '../chains/evm/support/token.ts'
import { atEnd } from '../support/at-end.ts'
import type { TestChain } from '../support/chain/evm.ts'
import { openChain } from '../support/chain/open.ts'

const folder = await mkdtemp(join(tmpdir(), 'farthing-placement-'))
atEnd(() => rm(folder, { recursive: true, force: true }))
const file = join(folder, 'token.json')

test('a token with the state of another chain is placed from a file, and a payment moves its money', async () => {
  const first = await openToken()
  const payment = await first.makePayment({ value: 40n })
  const paid = await first.makePayment()
  await first.assertPaid(paid)
  await writeFile(file, JSON.stringify([await readPlacement(first.chain)]))

  process.env.TOKEN_ARTIFACT = file
  const second = await openToken()
  const elsewhere = await openChain({ network: 'BASE_MAINNET' })
  process.env.TOKEN_ARTIFACT = ''
  // Only the file knows of this payer's balance and of the nonce that was used.
  assert.equal(await second.chain.balance(payment.payer.address), 100n)
  assert(await second.chain.isNonceUsed(paid.payer.address, paid.authorization.nonce))
  await second.assertPaid(payment)
  assert.equal(await second.chain.balance(payment.payer.address), 60n)
  await second.assertPaid(await second.makePayment())
  assert.equal(await elsewhere.balance(payment.payer.address), 0n, 'a token without an entry is ours')
})

/** The token of a chain as a placement: its proxy, the implementation that the proxy names, and the library. */
async function readPlacement({ client, domain, token }: TestChain): Promise<TokenPlacement> {
  // viem has no action for it.
  const request = client.request as (call: { method: string }) => Promise<Hex>
  const dump = gunzipSync(Buffer.from((await request({ method: 'anvil_dumpState' })).slice(2), 'hex'))
  const { accounts }: { accounts: TokenPlacement['accounts'] } = JSON.parse(dump.toString())
  const slot = keccak256(toBytes('org.zeppelinos.proxy.implementation'))
  const implementation = slice((await client.getStorageAt({ address: token, slot })) ?? '0x', 12)
  const addresses = [token.toLowerCase() as Address, implementation, signaturesAddress]
  const { name, version } = domain
  return {
    domain: { name, version, verifyingContract: token },
    decimals: 6,
    accounts: Object.fromEntries(addresses.map((address) => [address, accounts[address] ?? assert.fail()])),
  }
}
