import { knownAssets } from './agent/assets.ts'
import { type Message, readMessage, tokenAccountOf } from './agent/solana-message.ts'
import { RefundMismatch, type RefundTerms } from './refund-check.ts'
import type { Refund } from './wire.ts'

const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
const computeProgram = 'ComputeBudget111111111111111111111111111111'
/** "fthr" in ASCII, and 28 bytes that depend on the payment and the number of its refund. */
const refundMemo = /^0x66746872[0-9a-f]{56}$/

/**
 * Reads a transaction that the server wants the store's wallet to sign, byte by byte. Throws a `RefundMismatch` unless it
 * is one transfer of exactly this amount from the wallet to the recipient, in a token that this package knows, with
 * another account paying the fee, and nothing else. Returns its bytes.
 */
export async function checkRefundTransaction(
  { refund, transaction }: { readonly refund: Refund; readonly transaction: string },
  from: string,
  { amount, recipient }: RefundTerms,
): Promise<Uint8Array> {
  const asset = knownAssets.find(
    ({ network, address, domain }) => !domain && network === refund.network && address === refund.asset,
  )
  if (!asset)
    throw new RefundMismatch(
      'refund.asset',
      'a token that this package knows',
      `${refund.asset} on ${refund.network}`,
    )
  need('refund.from', from, refund.from)
  const { bytes, message } = read(transaction)
  const [feePayer, ...signers] = message.signers
  need('signers', from, signers.join(', '))
  if (feePayer === from) throw new RefundMismatch('fee payer', 'an account other than the wallet', from)

  const [transfer, ...more] = message.instructions.filter(({ program }) => program === tokenProgram)
  if (!transfer || more.length > 0)
    throw new RefundMismatch('transfers', '1', `${more.length + (transfer ? 1 : 0)}`)
  const [source, mint, destination, owner, ...others] = transfer.accounts
  need('source', await tokenAccountOf(from, asset.address), source)
  need('mint', asset.address, mint)
  need('destination', await tokenAccountOf(recipient, asset.address), destination)
  need('owner', from, owner)
  need('further accounts', '', others.join(', '))
  // TransferChecked: its number, the amount in eight little-endian bytes, and the decimals.
  const { data } = transfer
  if (data.length !== 10 || data[0] !== 12)
    throw new RefundMismatch('instruction', 'TransferChecked', `${data}`)
  need('amount', amount, `${new DataView(data.buffer, data.byteOffset).getBigUint64(1, true)}`)
  need('decimals', `${asset.decimals}`, `${data[9]}`)

  const rest = message.instructions.filter((one) => one !== transfer)
  const memos = rest.filter(({ program }) => program === memoProgram)
  for (const { program, accounts } of rest) {
    if (program !== memoProgram && program !== computeProgram)
      throw new RefundMismatch('program', 'none but the token’s, a memo and the compute budget', program)
    need('accounts of other instructions', '', accounts.join(', '))
  }
  const memo = memos.map((one) => new TextDecoder().decode(one.data)).join(' ')
  if (!refundMemo.test(memo)) throw new RefundMismatch('memo', 'the nonce of a refund', memo)
  return bytes
}

function read(transaction: string): { readonly bytes: Uint8Array; readonly message: Message } {
  try {
    const bytes = Uint8Array.from(atob(transaction), (character) => character.charCodeAt(0))
    return { bytes, message: readMessage(bytes) }
  } catch {
    throw new RefundMismatch('transaction', 'a Solana transaction in base64', transaction)
  }
}

function need(field: string, expected: string, offered: string | undefined): void {
  if (offered !== expected) throw new RefundMismatch(field, expected, String(offered))
}
