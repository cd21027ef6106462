import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseWalletAddress } from './chains/families.ts'
import { networks } from './networks.ts'

const evm = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'
const solana = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'

test('no two networks share an id or a CAIP-2 identifier', () => {
  assert.equal(new Set(networks.map(({ id }) => id)).size, networks.length)
  assert.equal(new Set(networks.map(({ caip2 }) => caip2)).size, networks.length)
})

test('every token has at least the 6 decimals that offered amounts use, and its address in canonical form', () => {
  for (const { family, assets } of networks)
    for (const { address, decimals } of assets) {
      assert(decimals >= 6)
      // Tokens are refused as wallets, but only after their address was found to be one.
      assert.deepEqual(parseWalletAddress(family, address), {
        refusal: 'This is the address of a token, not of a wallet.',
        fault: 'token',
      })
    }
})

test('an EVM address in a single case is accepted and returned checksummed', () => {
  for (const text of [evm, evm.toLowerCase(), `0x${evm.slice(2).toUpperCase()}`]) {
    assert.deepEqual(parseWalletAddress('EVM', text), { address: evm })
  }
})

test('an EVM address with one letter in the wrong case is refused', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 41 }), (place) => {
      const letter = evm[place] ?? ''
      fc.pre(/[a-fA-F]/.test(letter))
      const flipped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
      const wrong = evm.slice(0, place) + flipped + evm.slice(place + 1)
      assert('refusal' in parseWalletAddress('EVM', wrong))
    }),
  )
})

test('an address that is not a wallet is refused: zero, tokens, other lengths, other families', () => {
  const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
  for (const text of [
    `0x${'0'.repeat(40)}`,
    usdc,
    usdc.toLowerCase(),
    evm.slice(0, -1),
    `${evm}0`,
    evm.slice(2),
    solana,
    '',
    `${evm}\n`,
  ]) {
    assert('refusal' in parseWalletAddress('EVM', text), text)
  }
  const usdcMint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
  for (const text of [
    '1'.repeat(32),
    usdcMint,
    solana.slice(0, -2),
    `${solana}11`,
    solana.replace('9', '0'),
    evm,
    '',
    'z'.repeat(44),
  ]) {
    assert('refusal' in parseWalletAddress('SOLANA', text), text)
  }
})

test('any 32 bytes that are not all zero are a Solana address, and no other number of bytes is', () => {
  const base58 = (bytes: Uint8Array) => {
    const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
    let value = BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`)
    let text = ''
    for (; value > 0n; value /= 58n) text = alphabet[Number(value % 58n)] + text
    return '1'.repeat(bytes.findIndex((byte) => byte !== 0)) + text
  }
  const bytes = (length: number) =>
    fc.uint8Array({ minLength: length, maxLength: length }).filter((b) => b.some((x) => x !== 0))
  fc.assert(fc.property(bytes(32), (b) => 'address' in parseWalletAddress('SOLANA', base58(b))))
  fc.assert(
    fc.property(fc.oneof(bytes(31), bytes(33)), (b) => 'refusal' in parseWalletAddress('SOLANA', base58(b))),
  )
})
