import {
  AccountRole,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  createTransactionMessage,
  getTransactionEncoder,
  getU32Encoder,
  getU64Encoder,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import type { SolanaNetwork } from '../../networks.ts'
import { computeProgram, findTokenAccount, memoProgram, tokenProgram } from './transfer.ts'

/**
 * A transfer needs about 7,000 compute units, and a memo 350 for each of its at most 66 characters. The rest is for
 * guards.
 */
const computeUnits = 100_000
/** The first price of a compute unit, in millionths of a lamport: in total a hundredth of the signatures' fee. */
const microLamportsMin = 1_000n
/** The factor by which the price rises each time a transaction got into no block. */
const raise = 10n

/** The price of a compute unit after this many transactions for the same purpose got into no block. */
export function priceUnits({ computeUnitPriceMax }: SolanaNetwork, unlanded: number): bigint {
  let price = microLamportsMin
  for (let i = 0; i < unlanded && price < computeUnitPriceMax; i++) price *= raise
  return price < computeUnitPriceMax ? price : computeUnitPriceMax
}

/** Builds a payment or a refund in the only accepted form, for a signer that can't query a node. */
export async function writeExact(wanted: {
  readonly feePayer: string
  readonly payer: string
  readonly mint: string
  readonly decimals: number
  readonly payTo: string
  readonly amount: bigint
  readonly memo: string
  readonly blockhash: string
  readonly lastValidBlockHeight: bigint
  /** In millionths of a lamport. */
  readonly unitPrice: bigint
}): Promise<Uint8Array> {
  const { feePayer, payer, mint, decimals, payTo, amount, memo, blockhash, lastValidBlockHeight, unitPrice } =
    wanted
  const lifetime = { blockhash: blockhash as Blockhash, lastValidBlockHeight }
  const instructions = [
    { programAddress: computeProgram, data: Uint8Array.of(2, ...getU32Encoder().encode(computeUnits)) },
    {
      programAddress: computeProgram,
      data: Uint8Array.of(3, ...getU64Encoder().encode(unitPrice)),
    },
    {
      programAddress: tokenProgram,
      accounts: [
        { address: await findTokenAccount(payer, mint), role: AccountRole.WRITABLE },
        { address: address(mint), role: AccountRole.READONLY },
        { address: await findTokenAccount(payTo, mint), role: AccountRole.WRITABLE },
        { address: address(payer), role: AccountRole.READONLY_SIGNER },
      ],
      data: Uint8Array.of(12, ...getU64Encoder().encode(amount), decimals),
    },
    { programAddress: memoProgram, data: new TextEncoder().encode(memo) },
  ]
  const transaction = pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayer(address(feePayer), message),
    (message) => setTransactionMessageLifetimeUsingBlockhash(lifetime, message),
    (message) => appendTransactionMessageInstructions(instructions, message),
    compileTransaction,
  )
  return new Uint8Array(getTransactionEncoder().encode(transaction))
}
