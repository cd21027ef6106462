import { type Address, address, getAddressEncoder, getProgramDerivedAddress } from '@solana/kit'
import type { SolanaNetwork } from '../../networks.ts'
import { isSignedBy, type SvmTransaction } from './message.ts'

/**
 * The only form that a signed payment may have. A settler pays the fees of everything it signs, so this form leaves the
 * payer no other way to spend our money: compute units and their price are limited, there are at most two signatures,
 * no other programs run, and our account appears in no instruction except guards.
 *
 *   0  compute unit limit
 *   1  compute unit price
 *   2  TransferChecked of SPL Token
 *   3  one memo
 *
 * Wallets add guards by themselves, anywhere after the price. A guard is an assertion of the Lighthouse program about
 * an account after the transaction, which may be ours, and can only make the transaction fail. Any instruction that
 * names the fee payer can make it pay, so only harmless ones are allowed: instructions that read at most two accounts.
 * Instructions that write memory at the fee payer's expense, or call other programs, are refused.
 */
export type ExactTransfer = {
  readonly feePayer: Address
  readonly payer: Address
  readonly source: Address
  readonly mint: Address
  readonly destination: Address
  readonly amount: bigint
  readonly decimals: number
  readonly memo: string
  /** The highest cost for the fee payer, in lamports. */
  readonly feeMax: bigint
}

export const tokenProgram = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
export const accountProgram = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL')
export const systemProgram = address('11111111111111111111111111111111')
export const memoProgram = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')
export const computeProgram = address('ComputeBudget111111111111111111111111111111')
const lighthouseProgram = address('L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95')

const instructionsMin = 3
const instructionsMax = 7
/** Phantom adds four guards. */
const guardsMax = 6
/** Lighthouse's instructions by their first byte: 0 and 1 write memory, 16 and 17 are about trees and call other programs. */
const guardFirst = 2
const guardLast = 15
const guardAccountsMax = 2
/** The settler and the payer. */
const signersMax = 2
const lamportsPerSignature = 5_000n

type Instruction = SvmTransaction['instructions'][number]

const prefix = 'invalid_exact_svm_payload_transaction'

/** The transfer, or the x402 reason why it does not have that form. */
export function readExact(
  transaction: SvmTransaction,
  network: SolanaNetwork,
): ExactTransfer | { readonly refusal: string } {
  const { accounts, instructions: all, signatures } = transaction
  const refuse = (refusal: string) => ({ refusal })
  const [feePayer] = accounts
  if (!feePayer || transaction.hasLookups || transaction.version === 1) return refuse(prefix)
  if (signatures.length > signersMax) return refuse('invalid_exact_svm_payload_excessive_signers')
  const isGuard = ({ program }: Instruction, place: number) => program === lighthouseProgram && place > 1
  const guards = all.filter(isGuard)
  const instructions = all.filter((one, place) => !isGuard(one, place))
  const { length } = instructions
  if (length < instructionsMin || length > instructionsMax || guards.length > guardsMax)
    return refuse(`${prefix}_instructions_length`)

  const [limit, price, transfer, ...others] = instructions
  const units = readCompute(limit, 2)
  if (units === null) return refuse(`${prefix}_instructions_compute_limit_instruction`)
  if (units > BigInt(network.computeUnitsMax))
    return refuse(`${prefix}_instructions_compute_limit_instruction_too_high`)
  const microLamports = readCompute(price, 3)
  if (microLamports === null) return refuse(`${prefix}_instructions_compute_price_instruction`)
  if (microLamports > network.computeUnitPriceMax)
    return refuse(`${prefix}_instructions_compute_price_instruction_too_high`)

  if (instructions.some(({ accounts: used }) => used.includes(feePayer)))
    return refuse(`${prefix}_fee_payer_transferring_funds`)
  const [source, mint, destination, payer, ...cosigners] = transfer?.accounts ?? []
  const data = Buffer.from(transfer?.data ?? [])
  const isTransfer =
    transfer?.program === tokenProgram && data.length === 10 && data[0] === 12 && cosigners.length === 0
  if (!isTransfer || !source || !mint || !destination || !payer || source === destination)
    return refuse('invalid_exact_svm_payload_no_transfer_instruction')
  if (payer !== accounts[1] || signatures.length !== signersMax)
    return refuse('invalid_exact_svm_payload_signature_invalid')

  const unknown = others.findIndex(({ program }) => program !== memoProgram)
  if (unknown !== -1)
    return refuse(
      `invalid_exact_svm_payload_unknown_${['fourth', 'fifth', 'sixth', 'seventh'][unknown]}_instruction`,
    )
  const [memo, ...more] = others
  if (!memo || more.length > 0) return refuse('invalid_exact_svm_payload_memo_count')
  const written = [feePayer, source, destination, payer]
  const mayName = (account: Address | undefined) =>
    account !== undefined && (written.includes(account) || !transaction.writable.includes(account))
  if (!guards.every((guard) => onlyAsserts(guard) && guard.accounts.every(mayName)))
    return refuse('invalid_exact_svm_payload_guard_not_accepted')
  return {
    feePayer,
    payer,
    source,
    mint,
    destination,
    amount: data.readBigUInt64LE(1),
    decimals: data.readUInt8(9),
    memo: Buffer.from(memo.data).toString(),
    feeMax: lamportsPerSignature * BigInt(signersMax) + (units * microLamports + 999_999n) / 1_000_000n,
  }
}

/** Whether it is one of the assertions that read at most two accounts. */
function onlyAsserts({ accounts, data: [kind = 0] }: Instruction): boolean {
  return kind >= guardFirst && kind <= guardLast && accounts.length <= guardAccountsMax
}

/** Whether the payer's signature is present and valid. */
export function isSignedByPayer({ message, accounts, signatures }: SvmTransaction): boolean {
  const [, payer] = accounts
  const [, signature] = signatures
  return payer !== undefined && signature !== undefined && isSignedBy(payer, message, signature)
}

/** The number in an instruction of the compute budget program: 4 bytes for a limit, 8 for a price. */
function readCompute(instruction: Instruction | undefined, kind: 2 | 3): bigint | null {
  if (instruction?.program !== computeProgram || instruction.accounts.length > 0) return null
  const data = Buffer.from(instruction.data)
  if (data[0] !== kind || data.length !== (kind === 2 ? 5 : 9)) return null
  return kind === 2 ? BigInt(data.readUInt32LE(1)) : data.readBigUInt64LE(1)
}

/** The account in which a wallet keeps a token. Only there can the wallet receive it. */
export async function findTokenAccount(owner: string, mint: string): Promise<Address> {
  const { encode } = getAddressEncoder()
  const [found] = await getProgramDerivedAddress({
    programAddress: accountProgram,
    seeds: [encode(address(owner)), encode(tokenProgram), encode(address(mint))],
  })
  return found
}
