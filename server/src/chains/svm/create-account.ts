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
import { accountProgram, findTokenAccount, tokenProgram } from './transfer.ts'

const systemProgram = address('11111111111111111111111111111111')
/** Creates the account only if it does not exist, so that doing it twice costs a fee and nothing more. */
const createIdempotent = Uint8Array.of(1)

/** Sends the transaction that creates a wallet's account for a token, at the settler's expense. */
export async function createTokenAccount(
  { rpc }: SvmChain,
  signer: SvmSigner,
  owner: string,
  mint: string,
): Promise<string> {
  const { value } = await rpc.call<{ value: { blockhash: Blockhash; lastValidBlockHeight: number } }>(
    'getLatestBlockhash',
    [{ commitment: 'confirmed' }],
  )
  const lifetime = {
    blockhash: value.blockhash,
    lastValidBlockHeight: BigInt(value.lastValidBlockHeight),
  }
  const account = await findTokenAccount(owner, mint)
  const instruction = {
    programAddress: accountProgram,
    accounts: [
      { address: address(signer.address), role: AccountRole.WRITABLE_SIGNER },
      { address: account, role: AccountRole.WRITABLE },
      { address: address(owner), role: AccountRole.READONLY },
      { address: address(mint), role: AccountRole.READONLY },
      { address: systemProgram, role: AccountRole.READONLY },
      { address: tokenProgram, role: AccountRole.READONLY },
    ],
    data: createIdempotent,
  }
  const { messageBytes } = compileTransaction(
    pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayer(address(signer.address), message),
      (message) => setTransactionMessageLifetimeUsingBlockhash(lifetime, message),
      (message) => appendTransactionMessageInstruction(instruction, message),
    ),
  )
  const { hash, bytes } = signer.signOwn(new Uint8Array(messageBytes))
  await rpc.send('sendTransaction', [
    Buffer.from(bytes).toString('base64'),
    { encoding: 'base64', skipPreflight: true },
  ])
  return hash
}
