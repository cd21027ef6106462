import { address } from '@solana/kit'
import { agree } from '../agree.ts'
import { RpcUnavailableError } from '../rpc.ts'
import type { SvmChain } from './chain.ts'
import { toBase58 } from './message.ts'
import { findTokenAccount, tokenProgram } from './transfer.ts'
import { readAnswer } from './witnesses.ts'

/** SPL Token and its successor. They own token accounts and mints, never wallets. */
const tokenPrograms: readonly string[] = [tokenProgram, 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb']

/**
 * Why money can't go to a wallet, or why a wallet can't send it. A recipient can be changed; a wallet must be repaired.
 */
export type Hindrance = {
  readonly code: string
  readonly of: 'recipient' | 'wallet'
  readonly says: string
}

const hindrances = {
  recipient_is_token_account:
    'This is the address of a token account or a token, not of a wallet. Give the address of the wallet that owns the account.',
  recipient_is_program: 'This is the address of a program, not of a wallet.',
  recipient_account_missing:
    'This wallet has no account for the token, and nobody else pays for one. Its owner creates it in the wallet, or by receiving the token from elsewhere.',
  recipient_account_frozen: 'The token’s issuer has frozen this wallet’s account: nothing can be paid to it.',
  recipient_account_given_away: 'This wallet’s account for the token belongs to somebody else.',
  wallet_account_missing: 'The store’s wallet has no account for the token.',
  wallet_account_frozen:
    'The token’s issuer has frozen the account of the store’s wallet: nothing can be paid from it.',
  insufficient_funds: 'The store’s wallet holds less than the refund.',
} as const

type Code = keyof typeof hindrances

type RawAccount = {
  readonly owner: string
  readonly executable: boolean
  readonly data: readonly [string, string]
} | null

type Asked = {
  readonly mint: string
  readonly recipient: string
  /** The sender and the amount. Without them, only the recipient is checked. */
  readonly from?: { readonly wallet: string; readonly amount: bigint }
}

/**
 * What prevents a transfer to a recipient's own account for a token, according to enough providers; null if nothing
 * does. We do not pay for a missing account: its owner could close it, keep its rent, and ask again.
 */
export async function findHindrance(
  { rpc, network }: SvmChain,
  { mint, recipient, from }: Asked,
): Promise<Hindrance | null> {
  const accounts = [recipient, await findTokenAccount(recipient, mint)]
  if (from) accounts.push(await findTokenAccount(from.wallet, mint))
  const settings = { encoding: 'base64', commitment: 'confirmed' }
  const witnesses = await rpc.askAll([{ method: 'getMultipleAccounts', params: [accounts, settings] }])
  const told = witnesses.flatMap(({ provider, outcomes: [outcome] }) => {
    const fact = readAnswer(outcome, ({ value: [wallet, account, source] }: { value: RawAccount[] }) =>
      wallet === undefined || account === undefined
        ? null
        : {
            code:
              hindersRecipient(wallet, account, recipient) ??
              (from ? hindersWallet(source, from.amount) : null),
          },
    )
    return fact ? { provider, fact } : []
  })
  const { fact } = agree(told, ({ code }) => `${code}`, network.witnessesMin)
  if (!fact) throw new RpcUnavailableError('Too few nodes agree on the accounts that a refund needs.')
  const { code } = fact
  if (code === null) return null
  return { code, of: code.startsWith('recipient') ? 'recipient' : 'wallet', says: hindrances[code] }
}

function hindersRecipient(wallet: RawAccount, account: RawAccount, recipient: string): Code | null {
  if (wallet && tokenPrograms.includes(wallet.owner)) return 'recipient_is_token_account'
  if (wallet?.executable) return 'recipient_is_program'
  const held = account && readHeld(account)
  if (!held) return 'recipient_account_missing'
  if (held.isFrozen) return 'recipient_account_frozen'
  return held.owner === address(recipient) ? null : 'recipient_account_given_away'
}

function hindersWallet(account: RawAccount | undefined, amount: bigint): Code | null {
  const held = account && readHeld(account)
  if (!held) return 'wallet_account_missing'
  if (held.isFrozen) return 'wallet_account_frozen'
  return held.units < amount ? 'insufficient_funds' : null
}

/** A token account: its mint and its owner are 32 bytes each, then its units; the 109th byte is 2 if it is frozen. */
function readHeld({ owner, data }: NonNullable<RawAccount>) {
  const bytes = Buffer.from(data[0], 'base64')
  if (owner !== tokenProgram || bytes.length !== 165 || bytes[108] === 0) return null
  return {
    owner: toBase58(bytes.subarray(32, 64)),
    units: bytes.readBigUInt64LE(64),
    isFrozen: bytes[108] === 2,
  }
}
