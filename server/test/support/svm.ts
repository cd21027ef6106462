import {
  type AccountMeta,
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  getU64Encoder,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import { atEnd } from './at-end.ts'
import { type LocalSvmOptions, startLocalSvm } from './local-svm/start.ts'
import { findTokenAccount } from './local-svm/tokens.ts'

/** USDC's mint on devnet, which is also that of the local chain. */
export const usdc = address('4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU')
const tokenProgram = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
const memoProgram = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')

/** A Solana chain of this test file's own, stopped when the file is done. Blocks are made only by `mine` unless timed. */
export async function openSvm(options: Partial<LocalSvmOptions> = {}) {
  const chain = await startLocalSvm({
    now: () => new Date(),
    slotMs: null,
    mints: [{ address: usdc, decimals: 6 }],
    ...options,
  })
  atEnd(chain.stop)
  const rpc = createSolanaRpc(chain.url)

  return {
    ...chain,
    rpc,
    /** A key with a SOL for fees, and tokens if asked for. */
    async newPayer(units = 0n): Promise<KeyPairSigner> {
      const payer = await generateKeyPairSigner()
      await chain.fund(payer.address, { lamports: 1_000_000_000n, token: [usdc, units] })
      return payer
    },
    sign: (payer: KeyPairSigner, instructions: readonly Instruction[], feePayer?: Address) =>
      sign(chain, payer, instructions, feePayer),
  }
}

/** The instructions as a signed transaction on the newest blockhash, with the payer's fee unless another pays. */
async function sign(
  { url }: { readonly url: string },
  payer: KeyPairSigner,
  instructions: readonly Instruction[],
  feePayer?: Address,
) {
  const { value } = await createSolanaRpc(url).getLatestBlockhash({ commitment: 'processed' }).send()
  const transaction = await pipe(
    createTransactionMessage({ version: 0 }),
    (message) =>
      feePayer
        ? setTransactionMessageFeePayer(feePayer, message)
        : setTransactionMessageFeePayerSigner(payer, message),
    (message) => setTransactionMessageLifetimeUsingBlockhash(value, message),
    (message) => appendTransactionMessageInstructions(instructions, message),
    partiallySignTransactionMessageWithSigners,
  )
  return {
    wire: getBase64EncodedWireTransaction(transaction),
    get signature() {
      return getSignatureFromTransaction(transaction)
    },
  }
}

/** A plain transfer, signed and ready to be sent. */
export async function transferWire(
  chain: { readonly url: string },
  from: KeyPairSigner,
  to: string,
  units: bigint,
  references: readonly string[] = [],
): Promise<string> {
  const instruction = await transferTokens(from, to, units, references.map(address))
  return (await sign(chain, from, [instruction])).wire
}

/** A plain transfer, as wallets make it; each reference rides along, as Solana Pay asks for. */
export async function transferTokens(
  from: KeyPairSigner,
  to: string,
  units: bigint,
  references: readonly Address[] = [],
): Promise<Instruction> {
  const readonly = (at: Address): AccountMeta => ({ address: at, role: AccountRole.READONLY })
  const writable = (at: Address): AccountMeta => ({ address: at, role: AccountRole.WRITABLE })
  const [source, destination] = [await findTokenAccount(from.address, usdc), await findTokenAccount(to, usdc)]
  const authority = { ...readonly(from.address), role: AccountRole.READONLY_SIGNER as const, signer: from }
  return {
    programAddress: tokenProgram,
    accounts: [
      writable(source),
      readonly(usdc),
      writable(destination),
      authority,
      ...references.map(readonly),
    ],
    data: new Uint8Array([12, ...getU64Encoder().encode(units), 6]),
  }
}

export function memo(text: string): Instruction {
  return { programAddress: memoProgram, accounts: [], data: new TextEncoder().encode(text) }
}
