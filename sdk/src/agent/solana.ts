import { FarthingError } from '../errors.ts'
import { delayMs, readRetryAfter, wait } from '../wait.ts'
import type { PaymentRequirements } from '../wire.ts'
import type { Asset } from './assets.ts'
import { fromBase58, type Message, readMessage, toBase58, tokenAccountOf } from './solana-message.ts'
import { type CallOptions, timeoutMsDefault } from './submit.ts'

/**
 * Payments on Solana. A payer there signs a whole transaction, which needs a fresh blockhash, so the server builds it
 * and pays its fee. The server is not trusted: before signing, the transaction is read byte by byte and must contain
 * the offered transfer and nothing else.
 */

/** A wallet that signs serialized transactions. It returns the transaction with its signature filled in. */
export type SolanaSigner = {
  /** In base58. */
  readonly address: string
  signTransaction(transaction: Uint8Array): Promise<Uint8Array>
}

/** Creates a wallet from its secret key: the 64 bytes of a key file, or the same in base58, as wallets export it. */
export function solanaSigner(secretKey: Uint8Array | string): SolanaSigner {
  const secret = typeof secretKey === 'string' ? fromBase58(secretKey, 64) : secretKey
  if (secret.length !== 64) throw new TypeError('A Solana secret key must be 64 bytes.')
  const address = toBase58(secret.subarray(32))
  const pkcs8 = new Uint8Array([...pkcs8Head, ...secret.subarray(0, 32)])
  const key = crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', false, ['sign'])
  // signTransaction awaits the key and reports its failure; until then the rejection must not crash the process.
  key.catch(() => {})
  return {
    address,
    async signTransaction(transaction) {
      const { bytes, signers, signaturesAt } = readMessage(transaction)
      const place = signers.indexOf(address)
      if (place === -1) throw new TypeError(`${address} is not a signer of the transaction.`)
      const signed = transaction.slice()
      signed.set(
        new Uint8Array(await crypto.subtle.sign('Ed25519', await key, bytes)),
        signaturesAt + place * 64,
      )
      return signed
    },
  }
}

const pkcs8Head = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]

const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const memoProgram = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
const computeProgram = 'ComputeBudget111111111111111111111111111111'

/** Has the server build the transaction; retries during outages. Returns its bytes, or the server's reason to refuse. */
export async function prepareTransaction(
  checkoutUrl: string,
  { network }: PaymentRequirements,
  payer: string,
  options: CallOptions,
): Promise<Uint8Array | string> {
  const end = Date.now() + (options.timeoutMs ?? timeoutMsDefault)
  for (let tries = 1; ; tries++) {
    const answer = await post(checkoutUrl, new URLSearchParams({ network, payer }), options)
    const { transaction, error, code } = answer?.body ?? {}
    if (typeof transaction === 'string')
      return Uint8Array.from(atob(transaction), (character) => character.charCodeAt(0))
    if (answer && answer.status < 500 && answer.status !== 429) return String(error ?? code)
    const delay = delayMs(tries, answer?.retryAfterSeconds ?? null)
    if (Date.now() + delay > end)
      throw new FarthingError({
        code: 'no_answer',
        detail: `${checkoutUrl} returned no transaction to sign. Nothing was signed.`,
        status: answer?.status ?? null,
      })
    await wait(delay, options.signal)
  }
}

async function post(checkoutUrl: string, form: URLSearchParams, options: CallOptions) {
  try {
    const answer = await (options.fetch ?? fetch)(`${checkoutUrl}/prepare`, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body: form,
      redirect: 'manual',
      ...(options.signal && { signal: options.signal }),
    })
    const body = (await answer.json().catch(() => ({}))) as Record<string, unknown>
    return { status: answer.status, body, retryAfterSeconds: readRetryAfter(answer.headers) }
  } catch {
    return null
  }
}

/** Whether a transaction is exactly the offered transfer, from the payer's token account to that of `payTo`. */
export async function isOffered(
  transaction: Uint8Array,
  checkoutId: string,
  accepted: PaymentRequirements,
  asset: Asset,
  payer: string,
): Promise<boolean> {
  try {
    return await isTransfer(readMessage(transaction), checkoutId, accepted, asset, payer)
  } catch {
    // A transaction that cannot be read is not the offered one.
    return false
  }
}

async function isTransfer(
  message: Message,
  checkoutId: string,
  { amount, payTo, extra }: PaymentRequirements,
  asset: Asset,
  payer: string,
): Promise<boolean> {
  if (!('feePayer' in extra)) return false
  const transfers = message.instructions.filter(({ program }) => program === tokenProgram)
  const rest = message.instructions.filter(({ program }) => program !== tokenProgram)
  const [transfer] = transfers
  // TransferChecked: its number, the amount in eight little-endian bytes, and the decimals.
  const data = new Uint8Array(10)
  data[0] = 12
  new DataView(data.buffer).setBigUint64(1, BigInt(amount), true)
  data[9] = asset.decimals
  const accounts = [
    await tokenAccountOf(payer, asset.address),
    asset.address,
    await tokenAccountOf(payTo, asset.address),
    payer,
  ]
  return (
    transfers.length === 1 &&
    String(transfer?.data) === String(data) &&
    String(transfer?.accounts) === String(accounts) &&
    extra.memo === checkoutId &&
    String(message.signers) === String([extra.feePayer, payer]) &&
    rest.every(
      ({ program, accounts: used, data: said }) =>
        used.length === 0 &&
        (program === computeProgram ||
          (program === memoProgram && new TextDecoder().decode(said) === checkoutId)),
    )
  )
}
