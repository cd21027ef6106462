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

/** A transfer needs about 7,000, and a memo 350 for each of its 66 characters at most; the rest is for guards. */
const computeUnits = 100_000
/** What a unit costs at first, in millionths of a lamport: in all a hundredth of what the signatures cost. */
const microLamportsMin = 1_000n
/** A transaction that no block included pays this many times more the next time it is signed. */
const raise = 10n

/** The price of a unit after so many transactions for the same purpose were in no block. */
export function priceUnits({ computeUnitPriceMax }: SolanaNetwork, unlanded: number): bigint {
  let price = microLamportsMin
  for (let i = 0; i < unlanded && price < computeUnitPriceMax; i++) price *= raise
  return price < computeUnitPriceMax ? price : computeUnitPriceMax
}

/** Builds a payment or a refund in the only accepted form, ready to be signed by who cannot query a node. */
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
