import { decode } from '../svm/transaction.ts'
import type { Books, Scan, Transfer } from './history.ts'
import { ask } from './read-chain.ts'

type RawBlock = {
  readonly blockTime: number
  readonly transactions: readonly {
    readonly transaction: readonly [string, string]
    readonly meta: { readonly err: unknown; readonly fee: number }
  }[]
}
type TokenAccounts = {
  readonly value: readonly {
    readonly pubkey: string
    readonly account: {
      readonly data: {
        readonly parsed: { readonly info: { readonly tokenAmount: { readonly amount: string } } }
      }
    }
  }[]
}

/**
 * Reads a whole Solana ledger that has stopped, in the shape of a chain:
 *
 *   addresses   in lower case, as the checks expect them
 *   place       of a transfer: its slot and its transaction, which has one transfer here
 *   nonce       SHA-256 of the message, if an account other than the payer paid the fee: such a message is a payment
 *   canceled    payments that landed and failed: they can never land again
 *   headTime    the finalized height, which measures the life of a payment
 *   mined       the transactions that settlers paid for, in the order in which they landed: accounts have no nonces
 */
export async function scanLedger(
  url: string,
  mint: string,
  accounts: {
    readonly settlers: readonly string[]
    readonly wallets: readonly string[]
    readonly settlerLamports: bigint
  },
): Promise<Scan> {
  const slotAt = async (commitment: string) => (await ask<number>(url, [['getSlot', { commitment }]]))[0] ?? 0
  const head = await slotAt('processed')
  const [slots = []] = await ask<number[]>(url, [['getBlocks', 0, { commitment: 'processed' }]])
  const settings = { encoding: 'base64', commitment: 'processed', maxSupportedTransactionVersion: 0 }
  const blocks = await ask<RawBlock>(
    url,
    slots.map((slot) => ['getBlock', slot, settings]),
  )
  const holders = [...accounts.wallets, ...accounts.settlers]
  const held = await ask<TokenAccounts>(
    url,
    holders.map((owner) => [
      'getTokenAccountsByOwner',
      owner,
      { mint },
      { encoding: 'jsonParsed', commitment: 'processed' },
    ]),
  )
  const ownerOf = new Map(
    held.flatMap(({ value }, i) => value.map(({ pubkey }) => [pubkey, holders[i] ?? ''] as const)),
  )
  const lamports = await ask<{ value: number }>(
    url,
    accounts.settlers.map((settler) => ['getBalance', settler, { commitment: 'processed' }]),
  )
  const [finalizedHeight = 0] = await ask<number>(url, [['getBlockHeight', { commitment: 'finalized' }]])
  const landed = blocks.flatMap(({ blockTime, transactions }, i) =>
    transactions.map(({ transaction: [encoded], meta }) => ({
      ...decode(Buffer.from(encoded, 'base64')),
      slot: slots[i] ?? 0,
      blockTime,
      isFailed: meta.err !== null,
      fee: BigInt(meta.fee),
    })),
  )
  const transfers = landed.flatMap(
    ({ transfer, isFailed, slot, blockTime, signature, nonce, feePayer }): Transfer[] =>
      !transfer || isFailed || transfer.mint !== mint
        ? []
        : [
            {
              blockHash: `${slot}/${signature}`,
              blockNumber: slot,
              blockTime,
              transactionHash: signature,
              logIndex: 0,
              asset: mint.toLowerCase(),
              from: transfer.by.toLowerCase(),
              to: (ownerOf.get(transfer.destination) ?? transfer.destination).toLowerCase(),
              value: transfer.units,
              nonce: feePayer === transfer.by ? null : nonce,
            },
          ],
  )
  const numbers = new Map<string, number>()
  return {
    head,
    headTime: finalizedHeight,
    safe: await slotAt('confirmed'),
    finalized: await slotAt('finalized'),
    // Forks skip slots, so slot numbers do not tell how deep a block is.
    reachedAt: new Map(),
    // A transaction's cost does not depend on its slot.
    replaced: [],
    transfers,
    canceled: new Set(
      landed
        .filter(({ isFailed }) => isFailed)
        .map(({ transfer, feePayer, nonce }) => `${(transfer?.by ?? feePayer).toLowerCase()} ${nonce}`),
    ),
    mined: landed
      .filter(({ feePayer }) => accounts.settlers.includes(feePayer))
      .map(({ signature, feePayer, fee }) => {
        const nonce = numbers.get(feePayer) ?? 0
        numbers.set(feePayer, nonce + 1)
        return { hash: signature, from: feePayer.toLowerCase(), nonce, feeWei: fee }
      }),
    balances: new Map(
      holders.map((owner, i) => [
        owner.toLowerCase(),
        (held[i]?.value ?? []).reduce(
          (sum, { account }) => sum + BigInt(account.data.parsed.info.tokenAmount.amount),
          0n,
        ),
      ]),
    ),
    settlerFunds: new Map(
      accounts.settlers.map((settler, i) => [
        settler.toLowerCase(),
        { startWei: accounts.settlerLamports, endWei: BigInt(lamports[i]?.value ?? 0) },
      ]),
    ),
  }
}

/**
 * Books of a Solana network in the form that the checks expect: addresses in lower case, and a settler's signed bytes
 * numbered. Those that landed come first, in that order; the others may land in any order.
 */
export function fitBooks(books: Books, { mined }: Scan): Books {
  const places = new Map(mined.map(({ hash, nonce }) => [hash, nonce]))
  let next = mined.length
  return {
    ...books,
    authorizations: books.authorizations.map((one) => ({
      ...one,
      payer: one.payer.toLowerCase(),
      payTo: one.payTo.toLowerCase(),
    })),
    credits: books.credits.map((one) => ({
      ...one,
      asset: one.asset.toLowerCase(),
      payer: one.payer.toLowerCase(),
      payTo: one.payTo.toLowerCase(),
    })),
    broadcasts: books.broadcasts.map((one) => ({
      ...one,
      settler: one.settler.toLowerCase(),
      nonce: places.get(one.hash) ?? next++,
    })),
    settlers: books.settlers.map((one) => ({ ...one, address: one.address.toLowerCase() })),
    wallets: books.wallets.map((wallet) => wallet.toLowerCase()),
  }
}
