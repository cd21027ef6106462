import { findPayeeRefusal, parseWalletAddress, toStored } from '../chains/families.ts'
import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { networks } from '../networks.ts'
import { invalid, Problem } from '../problems.ts'

/** An address that may receive a refund, in stored form, or why it may not. */
type JudgedRecipient =
  | { readonly recipient: string }
  | { readonly refusal: 'malformed' | 'refused'; readonly detail: string }

/**
 * Whether an address may receive a refund of an asset. Rejects anything that is not a wallet address, the store's and our
 * own addresses, and addresses that the token or the chain would not pay. Throws a Problem if the chain cannot be asked.
 */
export async function judgeRecipient(
  ctx: Context,
  storeId: StoreId,
  { network: caip2, asset }: { readonly network: string; readonly asset: string },
  text: string,
): Promise<JudgedRecipient> {
  const network = networks.find((each) => each.caip2 === caip2)
  if (!network) return { refusal: 'refused', detail: 'This deployment does not know the network any more.' }
  const parsed = parseWalletAddress(network.family, text.trim())
  if ('refusal' in parsed) return { refusal: 'malformed', detail: parsed.refusal }
  const recipient = toStored(caip2, parsed.address)
  const owner = await readOwnerOf(ctx.db, storeId, recipient)
  if (owner) return { refusal: 'refused', detail: owned[owner] }
  const detail = await findPayeeRefusal(ctx, network, asset, recipient).catch(refuseUnavailable)
  return detail === null ? { recipient } : { refusal: 'refused', detail }
}

const owned = {
  store: 'This is a wallet of the store itself.',
  settler: 'This is an account that pays network fees, not a buyer’s wallet.',
} as const

/** The recipient in stored form. Throws a Problem if the address may not receive the refund. */
export async function requireRecipient(
  ctx: Context,
  storeId: StoreId,
  of: { readonly network: string; readonly asset: string },
  text: string,
): Promise<string> {
  const judged = await judgeRecipient(ctx, storeId, of, text)
  if ('recipient' in judged) return judged.recipient
  throw invalid({ pointer: '/recipient', code: 'recipient', detail: judged.detail })
}

function refuseUnavailable(cause: unknown): never {
  if (!isNodeError(cause)) throw cause
  throw new Problem(
    'unavailable',
    'The chain could not be asked whether the address can be paid. Nothing was changed.',
    { retryAfterSeconds: 5, cause },
  )
}

/** Whether an address belongs to the store, retired wallets too, or to a settler. */
async function readOwnerOf(
  db: Database,
  storeId: StoreId,
  address: string,
): Promise<'store' | 'settler' | null> {
  const [row] = await db.query<{ owner: 'store' | 'settler' | null }>(
    `select case when exists (select 1 from wallets w where w.store_id = $1 and w.pay_to = $2) then 'store'
       when exists (select 1 from settlers s where s.address = $2) then 'settler' end as owner`,
    [storeId, address],
  )
  return row?.owner ?? null
}
