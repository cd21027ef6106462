import type { SolanaNetwork } from '../../networks.ts'
import type { Guard } from '../signers/signing.ts'
import { decodeTransaction, encodeTransaction, type SvmTransaction } from './message.ts'
import { accountProgram, findTokenAccount, readExact, systemProgram, tokenProgram } from './transfer.ts'

/**
 * Everything that a settler's key signs on Solana, no matter which process asks: a payer's exact transfer of a known
 * token, which has only one form (transfer.ts), and the creation of a wallet's account for a known token, within the
 * operator's limit. Only fees and the rent of those accounts are left to steal, and both are limited per day.
 */

/** The rent of a token account, and the fee of one signature. */
const accountLamports = 2_039_280n
const signatureLamports = 5_000n
const zeros = new Uint8Array(64)

/** Why a payer's transaction must not be completed with this account's key, or null. If it may, its cost is counted. */
export function findTransferRefusal(
  network: SolanaNetwork,
  self: string,
  transaction: SvmTransaction,
  { limits, spending }: Guard,
): string | null {
  const exact = readExact(transaction, network)
  if ('refusal' in exact) return `a settler may only complete exact transfers: ${exact.refusal}`
  if (exact.feePayer !== self) return `the transaction names another fee payer, ${exact.feePayer}`
  if (!network.assets.some(({ address }) => address === exact.mint))
    return `${exact.mint} is not a known token`
  if (network.mode !== 'live') return null
  const slot = Buffer.from(transaction.message).toString('base64')
  const units = exact.feeMax
  return spending.take({ address: self, network: network.caip2, slot, units, perDay: limits.solPerDay })
}

/** Why this message must not be signed with this account's key, or null: it may only create a token account. */
export async function findCreationRefusal(
  network: SolanaNetwork,
  self: string,
  message: Uint8Array,
  { limits, spending }: Guard,
): Promise<string | null> {
  const form = 'a settler may only create token accounts of known tokens'
  const transaction = decodeTransaction(encodeTransaction({ message, signatures: [zeros] }))
  const [instruction, ...more] = transaction?.instructions ?? []
  if (!transaction || !instruction || more.length > 0 || transaction.hasLookups) return form
  const [payer, account, owner, mint, ...programs] = instruction.accounts
  const isCreation =
    instruction.program === accountProgram && instruction.data.length === 1 && instruction.data[0] === 1
  const hasPrograms = programs.length === 2 && programs[0] === systemProgram && programs[1] === tokenProgram
  if (!isCreation || !hasPrograms || payer !== self || transaction.accounts[0] !== self || !owner || !mint)
    return form
  if (!network.assets.some(({ address }) => address === mint)) return `${mint} is not a known token`
  if (account !== (await findTokenAccount(owner, mint))) return form
  const slot = Buffer.from(message).toString('base64')
  const counted = spending.take({
    ...{ address: self, network: `${network.caip2} accounts`, slot, units: 1n },
    perDay: BigInt(limits.solanaTokenAccountsPerDay),
  })
  if (counted !== null || network.mode !== 'live') return counted
  const units = accountLamports + signatureLamports
  return spending.take({ address: self, network: network.caip2, slot, units, perDay: limits.solPerDay })
}
