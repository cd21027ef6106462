/** A wallet is proven by its own signature of a challenge, and by nothing else. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import type { Wallet, WalletChallenge } from '@farthing/sdk'
import { getBase58Decoder } from '@solana/kit'
import { concat, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openTestApp } from '../support/app.ts'
import { openEvm } from '../support/chain/evm.ts'
import { newPayer, type Payer, wrap } from '../support/chain/evm-payment.ts'
import {
  assertInvalid,
  assertProblem,
  openStore,
  registerWallet,
  type StoreClient,
} from '../support/store.ts'

const [here, there] = await Promise.all([openEvm(), openEvm({ network: 'BASE_SEPOLIA' })])
const farthing = await openTestApp({
  NETWORKS: 'LOCAL,BASE_SEPOLIA,SOLANA_LOCAL',
  LOCAL_RPC_URLS: here.url,
  BASE_SEPOLIA_RPC_URLS: there.url,
})
const open = () => openStore(farthing, { mode: 'test', evmWallet: null })

const at = (shop: StoreClient, { id }: Pick<Wallet, 'id'>, verb: string) =>
  `/api/v1/stores/${shop.id}/wallets/${id}/${verb}`
const present = (shop: StoreClient, wallet: Wallet, signature: string) =>
  shop.call('POST', at(shop, wallet, 'prove'), { signature })
const signBy = ({ key }: Payer, message: string): Promise<Hex> =>
  privateKeyToAccount(key).signMessage({ message })

async function challenge(shop: StoreClient, wallet: Wallet): Promise<string> {
  const answer = await shop.call('POST', at(shop, wallet, 'challenge'))
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<WalletChallenge>().message
}

async function isProven(shop: StoreClient, { id }: Wallet): Promise<boolean> {
  const { data } = (await shop.call('GET', `/api/v1/stores/${shop.id}/wallets`)).json<{ data: Wallet[] }>()
  return data.some((wallet) => wallet.id === id && wallet.provenAt !== null)
}

test('a wallet is proven by its signature of the challenge, once, and the log shows it', async () => {
  const shop = await open()
  const holder = newPayer()
  const wallet = await registerWallet(shop, holder.address)
  assert.equal(wallet.provenAt, null)
  const message = await challenge(shop, wallet)
  for (const part of ['farthing.example', shop.id, holder.address]) assert(message.includes(part), part)
  const signature = await signBy(holder, message)
  const answer = await present(shop, wallet, signature)
  assert.equal(answer.statusCode, 200, answer.body)
  const { provenAt } = answer.json<Wallet>()
  assert(provenAt)
  assert.deepEqual((await shop.events()).at(-1)?.data, { wallet: { ...wallet, provenAt } })
  assertInvalid(await present(shop, wallet, signature), '/signature')
  assert(await isProven(shop, wallet), 'a refused repetition takes nothing away')
})

test('a signature proves nothing for another store, another wallet, another host or a replaced challenge', async () => {
  const [mine, other] = [await open(), await open()]
  const [holder, second] = [newPayer(), newPayer()]
  const wallet = await registerWallet(mine, holder.address)
  const twin = await registerWallet(other, holder.address)
  const sibling = await registerWallet(mine, second.address)
  const message = await challenge(mine, wallet)
  const texts = {
    'another store': await challenge(other, twin),
    'another wallet': await challenge(mine, sibling),
    'another host': message.replace('farthing.example', 'evil.example'),
    'a replaced challenge': message,
    'another time': message.replace(/Valid until: \d{4}/, 'Valid until: 9999'),
  }
  const latest = await challenge(mine, wallet)
  for (const [what, text] of Object.entries(texts)) {
    const answer = await present(mine, wallet, await signBy(holder, text))
    assert.equal(answer.statusCode, 422, what)
  }
  assertInvalid(await present(mine, wallet, await signBy(second, latest)), '/signature')
  assertInvalid(await present(other, twin, await signBy(holder, latest)), '/signature')
  assertProblem(await present(other, wallet, await signBy(holder, latest)), 404, 'not_found')
  assert(!(await isProven(mine, wallet)) && !(await isProven(other, twin)))
  assert.equal((await present(mine, wallet, await signBy(holder, latest))).statusCode, 200)
  assert(!(await isProven(other, twin)), 'the other store has proven nothing')
})

test('a challenge ends after an hour', async () => {
  const shop = await open()
  const holder = newPayer()
  const wallet = await registerWallet(shop, holder.address)
  const signature = await signBy(holder, await challenge(shop, wallet))
  farthing.clock.now = new Date(Date.now() + 60 * 60_000)
  const answer = await present(shop, wallet, signature)
  farthing.clock.now = null
  assertInvalid(answer, '/signature')
  assert(!(await isProven(shop, wallet)))
})

test('a contract wallet is proven by what it accepts (ERC-1271)', async () => {
  const shop = await open()
  const owner = newPayer()
  const wallet = await registerWallet(shop, await here.deploy('OwnedWallet', [owner.address]))
  const message = await challenge(shop, wallet)
  assertInvalid(await present(shop, wallet, await signBy(newPayer(), message)), '/signature')
  assertInvalid(await present(shop, wallet, '0x1234'), '/signature')
  assert.equal((await present(shop, wallet, await signBy(owner, message))).statusCode, 200)
})

const magic: Hex = `0x${'6492'.repeat(16)}`

test('a wallet that wraps its signature by ERC-6492 is proven by what is inside, and by nothing that is wrapped twice or badly', async () => {
  const shop = await open()
  const owner = newPayer()
  const contract = await registerWallet(shop, await here.deploy('OwnedWallet', [owner.address]))
  const ordinary = await registerWallet(shop, owner.address)
  const lie = await here.foresee(owner.address)
  for (const wallet of [contract, ordinary]) {
    const message = await challenge(shop, wallet)
    const signature = await signBy(owner, message)
    const stranger = await signBy(newPayer(), message)
    const bad = [wrap(stranger, lie), wrap(wrap(signature)), wrap('0x'), concat([signature, magic])]
    for (const presented of [...bad, wrap(concat([signature, magic])), `0x${'ab'.repeat(4_097)}`])
      assertInvalid(await present(shop, wallet, presented), '/signature')
    assert(!(await isProven(shop, wallet)))
    assert.equal((await present(shop, wallet, wrap(signature, lie))).statusCode, 200)
    assertInvalid(await present(shop, wallet, signature), '/signature')
  }
  assert.equal(await here.client.getCode({ address: lie.address }), undefined, 'nobody ran the wrapper')
})

test('a smart wallet that is deployed nowhere is told so, is not deployed by us, and is proven once it is', async () => {
  const shop = await open()
  const owner = newPayer()
  const { address, ...wrapper } = await there.foresee(owner.address)
  const wallet = await registerWallet(shop, address)
  const signature = await signBy(owner, await challenge(shop, wallet))
  for (const presented of [wrap(signature, wrapper), concat([signature, signature])]) {
    const answer = await present(shop, wallet, presented)
    assertInvalid(answer, '/signature')
    const [{ code, detail }] = answer.json().errors
    assert.equal(code, 'wallet_not_deployed')
    assert.match(detail, new RegExp(`${address} is a smart wallet that is deployed on none`))
  }
  assert.equal((await present(shop, wallet, signature)).json().errors[0].code, 'signature')
  assert.equal(await there.client.getCode({ address }), undefined)
  await there.perform({ to: wrapper.factory, data: wrapper.calldata })
  assert.equal((await present(shop, wallet, wrap(signature, wrapper))).statusCode, 200)
})

test('a contract wallet is not proven while another contract has its address on another network', async () => {
  const shop = await open()
  const [owner, stranger] = [newPayer(), newPayer()]
  const address = await here.deploy('OwnedWallet', [owner.address])
  const elsewhere = await there.deploy('OwnedWallet', [stranger.address])
  const code = await there.client.getCode({ address: elsewhere })
  assert(code)
  const wallet = await registerWallet(shop, address)
  const message = await challenge(shop, wallet)
  await there.client.setCode({ address, bytecode: code })
  for (const signer of [owner, stranger])
    assertInvalid(await present(shop, wallet, await signBy(signer, message)), '/signature')
  await there.client.setCode({ address, bytecode: '0x' })
  assert.equal((await present(shop, wallet, await signBy(owner, message))).statusCode, 200)
})

test('a Solana wallet is proven by an ed25519 signature of the same text', async () => {
  const shop = await open()
  const [holder, stranger] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
  const base58 = (bytes: Uint8Array) => getBase58Decoder().decode(bytes)
  const { x = '' } = holder.publicKey.export({ format: 'jwk' })
  const wallet = await registerWallet(shop, base58(Buffer.from(x, 'base64url')), 'solana')
  const message = Buffer.from(await challenge(shop, wallet))
  assertInvalid(await present(shop, wallet, base58(sign(null, message, stranger.privateKey))), '/signature')
  assertInvalid(await present(shop, wallet, 'x'.repeat(88)), '/signature')
  assert.equal((await present(shop, wallet, base58(sign(null, message, holder.privateKey)))).statusCode, 200)
})

test('proof and sharedElsewhere survive that a wallet is retired and registered again', async () => {
  const shop = await open()
  const holder = newPayer()
  const wallet = await registerWallet(shop, holder.address)
  assert.equal(wallet.sharedElsewhere, false)
  await present(shop, wallet, await signBy(holder, await challenge(shop, wallet)))
  const path = at(shop, wallet, '').slice(0, -1)
  const marked = await shop.call('PATCH', path, { sharedElsewhere: true })
  assert.equal(marked.json<Wallet>().sharedElsewhere, true)
  assert.equal((await shop.events()).at(-1)?.type, 'wallet.updated')
  await shop.call('POST', at(shop, wallet, 'retire'))
  const again = await registerWallet(shop, holder.address)
  assert.notEqual(again.id, wallet.id)
  assert(again.provenAt)
  assert.equal(again.sharedElsewhere, true)
})
