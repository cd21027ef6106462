import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import { SignerAwayError, SignRefusedError } from '../../chains/signers/signing.ts'
import { findReady, type SvmChain } from '../../chains/svm/chain.ts'
import { createTokenAccount } from '../../chains/svm/create-account.ts'
import type { SvmSigner } from '../../chains/svm/signer.ts'
import type { Context } from '../../context.ts'
import * as rows from './account-rows.ts'

/** Wallets per request. */
const walletsPerLook = 100

/**
 * Checks which stores' wallets have the token account that their money goes to, and creates missing ones as far as the
 * operator lets settlers pay for them. A creation is committed before it is sent, and sending it twice is harmless; the
 * next check finds whether it worked.
 */
export async function tendAccounts(
  ctx: Context,
  { chain, signer }: { readonly chain: SvmChain; readonly signer: SvmSigner | undefined },
): Promise<boolean> {
  const { caip2, mode, assets } = chain.network
  let isMore = false
  for (const { address: asset } of assets) {
    const owners = await rows.listUnchecked(ctx.db, caip2, asset, mode, walletsPerLook)
    if (owners.length === 0) continue
    const isReady = await findReady(chain, owners, asset)
    const found = owners.map((owner, i) => ({ owner, isReady: isReady[i] ?? false }))
    await ctx.db.transaction((tx) => rows.noteChecked(tx, caip2, asset, found))
    isMore ||= owners.length === walletsPerLook
    if (!signer) continue
    for (const { owner } of found.filter((one) => !one.isReady)) {
      if (await rows.undertakeCreation(ctx.db, caip2, asset, owner, ctx.config.solanaTokenAccountsPerDay))
        await create(ctx, chain, signer, owner, asset)
    }
  }
  return isMore
}

async function create(
  ctx: Context,
  chain: SvmChain,
  signer: SvmSigner,
  owner: string,
  asset: string,
): Promise<void> {
  try {
    const hash = await createTokenAccount(chain, signer, owner, asset)
    ctx.log.info(
      { txHash: hash, owner },
      'sent a transaction that creates a token account; the next check confirms it',
    )
  } catch (error) {
    const kinds = [RpcAnswerError, RpcUnavailableError, SignRefusedError, SignerAwayError]
    if (!kinds.some((kind) => error instanceof kind)) throw error
    ctx.log.warn(
      { owner, err: error },
      'could not send a transaction that creates a token account; trying again in 2 minutes',
    )
  }
}
