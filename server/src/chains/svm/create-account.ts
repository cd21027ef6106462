import {
  AccountRole,
  address,
  appendTransactionMessageInstruction,
  type Blockhash,
  compileTransaction,
  createTransactionMessage,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import type { SvmChain } from './chain.ts'
import type { SvmSigner } from './signer.ts'
import { accountProgram, findTokenAccount, systemProgram, tokenProgram } from './transfer.ts'

/** Creates the account only if it does not exist, so that doing it twice costs a fee and nothing more. */
const createIdempotent = Uint8Array.of(1)

type Lifetime = { readonly blockhash: string; readonly lastValidBlockHeight: bigint }

/** Sends the transaction that creates a wallet's account for a token, at the settler's expense. */
export async function createTokenAccount(
  { rpc, network }: SvmChain,
  signer: SvmSigner,
  owner: string,
  mint: string,
): Promise<string> {
  const { value } = await rpc.call<{ value: { blockhash: string; lastValidBlockHeight: number } }>(
    'getLatestBlockhash',
    [{ commitment: 'confirmed' }],
  )
  const lifetime = { ...value, lastValidBlockHeight: BigInt(value.lastValidBlockHeight) }
  const message = await compileCreation(signer.address, owner, mint, lifetime)
  const { hash, bytes } = await signer.signOwn(network, message)
  await rpc.send('sendTransaction', [
    Buffer.from(bytes).toString('base64'),
    { encoding: 'base64', skipPreflight: true },
  ])
  return hash
}

/** The message that creates a wallet's account for a token, paid by this settler. */
export async function compileCreation(
  settler: string,
  owner: string,
  mint: string,
  { blockhash, lastValidBlockHeight }: Lifetime,
): Promise<Uint8Array> {
  const account = await findTokenAccount(owner, mint)
  const instruction = {
    programAddress: accountProgram,
    accounts: [
      { address: address(settler), role: AccountRole.WRITABLE_SIGNER },
      { address: account, role: AccountRole.WRITABLE },
      { address: address(owner), role: AccountRole.READONLY },
      { address: address(mint), role: AccountRole.READONLY },
      { address: systemProgram, role: AccountRole.READONLY },
      { address: tokenProgram, role: AccountRole.READONLY },
    ],
    data: createIdempotent,
  }
  const lifetime = { blockhash: blockhash as Blockhash, lastValidBlockHeight }
  const { messageBytes } = compileTransaction(
    pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayer(address(settler), message),
      (message) => setTransactionMessageLifetimeUsingBlockhash(lifetime, message),
      (message) => appendTransactionMessageInstruction(instruction, message),
    ),
  )
  return new Uint8Array(messageBytes)
}
