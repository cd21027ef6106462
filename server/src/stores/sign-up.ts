import { findTokenAccounts, parseWalletAddress } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { readState } from '../directory/rows.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { actorOf, announce } from '../members/announce.ts'
import { Refusal } from '../members/refusal.ts'
import { insertMembership } from '../members/rows.ts'
import type { Browser } from '../members/session.ts'
import { openSignUp, type SignUp, signUp } from '../members/sign-up.ts'
import { noteWalletsSeen } from '../members/silence.ts'
import type { CreationOptions } from '../members/webauthn.ts'
import { type Family, families, type Mode } from '../networks.ts'
import { createStoreIn } from './create.ts'
import { networksFor } from './store.ts'
import { type FoundWallet, registerWalletIn } from './wallets.ts'

/**
 * A stranger opens stores: a test store that works at once, and a live one that waits (see standing.ts). They own both and
 * get the id of the live one, if live stores exist here.
 * Nothing about them has been checked, so their wallet is unproven, and their stores have limits until one is proven.
 * They are not asked for an e-mail address: they could enter another person's, who would then get our mails.
 */
export type Applicant = {
  readonly name: string
  readonly storeName: string
  /** The wallet's address, in any family that this deployment is paid in. */
  readonly walletAddress: string
}

const forever = new Date('9999-12-31')

/** Whether strangers may sign up here. */
export function takesSignUps({ config }: Context): boolean {
  return config.signUp !== 'closed' && config.consoleUrl !== ''
}

export async function openStoreSignUp(
  ctx: Context,
  browserToken: string,
  block: string,
  applicant: Applicant,
  now: Date,
): Promise<{ readonly memberId: MemberId; readonly options: CreationOptions }> {
  if (!takesSignUps(ctx)) throw new Refusal('not_found')
  if (ctx.directory && !(await readState(ctx.db)).takesStores) throw new Refusal('drained')
  parseWallet(ctx, applicant.walletAddress)
  return await openSignUp(ctx, browserToken, block, { ...applicant }, now)
}

export async function signUpForStore(
  ctx: Context,
  browser: Browser,
  signing: Omit<SignUp, 'application'> & { readonly applicant: Applicant },
  now: Date,
): Promise<{ readonly token: string; readonly storeId: StoreId | undefined }> {
  if (!takesSignUps(ctx)) throw new Refusal('not_found')
  const { applicant, ...rest } = signing
  const { family, address } = parseWallet(ctx, applicant.walletAddress)
  const accounts = await findTokenAccounts(ctx, family, address)
  // Where cells share a directory, the wallet has to be proven first: it could belong to any store.
  const hold = ctx.directory ? 'free' : null
  const wallet = { family, address, accounts, custodialType: 'NON_CUSTODIAL', hold } as const
  let storeId: StoreId | undefined
  const token = await signUp(
    ctx,
    browser,
    { ...rest, application: { ...applicant } },
    now,
    async (tx, member) => {
      // The live store comes last.
      for (const mode of modesOf(ctx))
        storeId = await openStore(ctx, tx, { mode, name: applicant.storeName, member, wallet, now })
    },
  )
  ctx.log.info(
    { memberId: signing.memberId },
    'a stranger signed up; if their live store waits for you, run: store list, store approve STORE',
  )
  return { token, storeId }
}

/** The modes in which this deployment can be paid. Test comes first, because it works at once. */
function modesOf(ctx: Context): Mode[] {
  return (['test', 'live'] as const).filter((mode) => networksFor(ctx, mode).length > 0)
}

async function openStore(
  ctx: Context,
  tx: Transaction,
  wanted: {
    readonly mode: Mode
    readonly name: string
    readonly member: { readonly id: MemberId; readonly name: string }
    readonly wallet: FoundWallet
    readonly now: Date
  },
): Promise<StoreId> {
  const { mode, name, member, wallet, now } = wanted
  const actor = actorOf(member)
  const waits = ctx.config.signUp === 'open' ? 'unproven' : 'waiting'
  const signsUpAs = mode === 'live' ? waits : 'approved'
  const { id: storeId } = await createStoreIn(ctx, tx, { name, mode, signsUpAs }, now)
  await insertMembership(tx, storeId, member.id, 'owner', now)
  const owner = { ...member, role: 'owner' } as const
  await announce(ctx, tx, { storeId, actor, type: 'member.joined', member: owner, now })
  await registerWalletIn(ctx, tx, { storeId, actor, now }, wallet)
  // They have just entered it: it is no news to them. The database's clock bounds the time.
  await noteWalletsSeen(tx, storeId, member.id, forever)
  return storeId
}

/** The families that a new store can be paid in. */
export function signUpFamilies(ctx: Context): Family[] {
  const offered = modesOf(ctx).flatMap((mode) => networksFor(ctx, mode).map(({ family }) => family))
  return families.filter((each) => offered.includes(each))
}

/** The families differ so much that an address fits one of them at most. */
function parseWallet(ctx: Context, text: string): Pick<FoundWallet, 'family' | 'address'> {
  for (const family of signUpFamilies(ctx)) {
    const parsed = parseWalletAddress(family, text)
    if ('address' in parsed) return { family, address: parsed.address }
  }
  throw new Refusal('wallet_address')
}
