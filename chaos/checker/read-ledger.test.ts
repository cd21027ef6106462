import assert from 'node:assert/strict'
import { test } from 'node:test'
import { svmTransaction } from '../../server/test/support/chain/svm-payment.ts'
import { newSettlerKey, openLedger, solana } from '../svm/ledger.ts'
import { ask } from './read-chain.ts'
import { scanLedger } from './read-ledger.ts'

const lower = (address: string) => address.toLowerCase()

test('a ledger is read with payments, failed payments and settlers’ transactions, and without those that a fork removed', async (t) => {
  const ledger = await openLedger()
  t.after(ledger.stop)
  ledger.end()
  const settler = await ledger.newPayer(0n, 10_000_000n)
  const stranger = await newSettlerKey()
  const wallet = await ledger.newPayer(0n)
  const payer = await ledger.newPayer(3n)
  const accepted = {
    scheme: 'exact' as const,
    network: solana.network,
    asset: solana.mint,
    payTo: wallet.address,
    amount: '2',
    maxTimeoutSeconds: 60,
    extra: { feePayer: settler.address, memo: 'ch_1' },
  }
  const pay = async (amount: bigint, memo: string) => {
    const blockhash = await ledger.blockhash('confirmed')
    const unsigned = await svmTransaction(accepted, payer, { blockhash, amount, memo })
    const bytes = Buffer.from(unsigned, 'base64')
    const key = await crypto.subtle.sign('Ed25519', settler.keyPair.privateKey, bytes.subarray(129))
    bytes.set(new Uint8Array(key), 1)
    await ledger.send(bytes.toString('base64'))
    ledger.mine()
  }
  await pay(2n, 'ch_1')
  // It sends more than is left, so it lands, costs the fee and moves nothing.
  await pay(2n, 'ch_2')
  await pay(1n, 'ch_3')
  await ledger.fork(1)

  const accounts = {
    settlers: [settler.address, stranger.address],
    wallets: [wallet.address],
    settlerLamports: 10_000_000n,
  }
  const scan = await scanLedger(ledger.url, solana.mint, accounts)
  const [slot] = await ask<number>(ledger.url, [['getSlot', { commitment: 'processed' }]])
  assert.equal(scan.head, slot)
  const [transfer, ...others] = scan.transfers
  assert.deepEqual(others, [])
  assert(transfer)
  const { from, to, value, asset, nonce, blockHash, blockNumber, transactionHash } = transfer
  assert.deepEqual([from, to, asset], [payer.address, wallet.address, solana.mint].map(lower))
  assert.equal(value, 2n)
  assert.equal(blockHash, `${blockNumber}/${transactionHash}`)
  assert.match(nonce ?? '', /^0x[0-9a-f]{64}$/)
  assert.equal(scan.canceled.size, 1)
  assert.deepEqual(
    scan.mined.map(({ nonce: number, from: paidBy }) => [number, paidBy]),
    [
      [0, lower(settler.address)],
      [1, lower(settler.address)],
    ],
  )
  const spent = scan.mined.reduce((sum, { feeWei }) => sum + feeWei, 0n)
  assert.equal(scan.settlerFunds.get(lower(settler.address))?.endWei, 10_000_000n - spent)
  assert.equal(scan.balances.get(lower(wallet.address)), 2n)
})
