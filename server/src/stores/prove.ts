import assert from 'node:assert/strict'
import type { ProveWallet, WalletChallenge, Wallet as WireWallet } from '@farthing/sdk'
import { judgeText } from '../chains/families.ts'
import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type Hold, keepHold } from '../directory/own.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { isId, randomText, type StoreId, type WalletId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { type Author, announceChange, askForChange, needsOwner } from './change.ts'
import { lockStore, walletColumns, writeUnowned } from './rows.ts'
import { needsProof, type Store, type Wallet, walletToWire } from './store.ts'
import { holdWallet } from './wallets.ts'

/** Several people may have to sign for a contract wallet. */
const challengeMinutes = 60
/** 5 bits each. */
const challengeLength = 26

/** Gives a wallet's holder a message to sign. A new challenge replaces the one before. */
export async function challengeWallet(
  ctx: Context,
  store: Store,
  walletId: string,
  now: Date,
): Promise<WalletChallenge> {
  const challenge = {
    text: randomText(challengeLength),
    expiresAt: new Date(now.getTime() + challengeMinutes * 60_000),
  }
  const wallet = isId('wal', walletId) ? await writeChallenge(ctx.db, store.id, walletId, challenge) : null
  if (!wallet) throw new Problem('not_found', 'No such wallet.')
  return {
    walletId: wallet.id,
    message: toMessage(ctx, store.id, wallet.address, challenge),
    expiresAt: challenge.expiresAt.toISOString(),
  }
}

/**
 * Records that the wallet's holder has signed the challenge. The message is built again from the store, the wallet and
 * this deployment's host, so a signature for another of these proves nothing here. If the wallet waited for a proof,
 * this cell now becomes its owner and puts it to use, as registering would have done.
 */
export async function proveWallet(
  ctx: Context,
  by: Author,
  walletId: string,
  { signature }: ProveWallet,
): Promise<WireWallet> {
  const { store, actor, now } = by
  const found = isId('wal', walletId) ? await readChallenge(ctx.db, store.id, walletId) : null
  if (!found) throw new Problem('not_found', 'No such wallet.')
  const { wallet, challenge } = found
  if (!challenge || challenge.expiresAt <= now) throw noChallenge()
  const message = toMessage(ctx, store.id, wallet.address, challenge)
  const verdict = await judge(ctx, store, wallet, message, signature)
  if (verdict !== 'signed') throw unproven(wallet, verdict)
  const prove = async (tx: Transaction) => {
    const proven = await writeProof(tx, wallet.id, challenge.text, now)
    if (!proven) throw noChallenge()
    await noteStoreProven(tx, store.id, now)
    return proven
  }
  if (wallet.retiredAt === null && needsProof(wallet)) {
    const hold = await holdWallet(ctx, store.mode, wallet.family, wallet.address, 'proof')
    assert(hold !== 'free', 'with a basis it is granted or refused')
    return await putToUse(ctx, by, wallet, hold, prove)
  }
  return await ctx.db.transaction(async (tx) => {
    const wire = walletToWire(ctx, store.mode, await prove(tx))
    await appendEvent(
      tx,
      newEvent(ctx, store.id, actor, { type: 'wallet.updated', data: { wallet: wire } }, now),
    )
    return wire
  })
}

async function putToUse(
  ctx: Context,
  author: Author,
  { id, family }: Wallet,
  hold: Hold,
  prove: (tx: Transaction) => Promise<Wallet>,
): Promise<WireWallet> {
  const wire = await ctx.db.transaction(async (tx) => {
    const by = { ...author, store: await lockStore(tx, author.store.id) }
    await keepHold(tx, hold)
    const { retiredAt } = await prove(tx)
    if (retiredAt === null) {
      await writeUnowned(tx, id, false)
      // A member proves without a touch, and a stolen cookie must not put a wallet to use.
      const waits = needsOwner(by.store, by.actor) || by.actor.type === 'member'
      await askForChange(ctx, tx, by, { kind: 'use', family, walletId: id }, waits)
    }
    const used = await announceChange(ctx, tx, by, 'wallet.updated', id)
    crashPoint(ctx, 'hold-before-commit')
    return used
  })
  crashPoint(ctx, 'hold-after-commit')
  return wire
}

async function judge(
  ctx: Context,
  { mode }: Store,
  { family, address }: Wallet,
  message: string,
  signature: string,
) {
  try {
    return await judgeText(ctx, { family, address, mode }, message, signature)
  } catch (cause) {
    if (!isNodeError(cause)) throw cause
    throw new Problem(
      'unavailable',
      'The chain could not be asked whether this is a contract wallet that accepts the signature. Nothing was changed.',
      { retryAfterSeconds: 5, cause },
    )
  }
}

/** The text that the wallet shows to the person who signs. */
function toMessage(ctx: Context, storeId: StoreId, address: string, challenge: Challenge): string {
  return [
    `${new URL(ctx.config.baseUrl).host} asks you to prove that this wallet is yours.`,
    '',
    `Store: ${storeId}`,
    `Wallet: ${address}`,
    `Challenge: ${challenge.text}`,
    `Valid until: ${challenge.expiresAt.toISOString()}`,
    '',
    'Sign only if this is your store. It will see payments to this wallet that belong to no checkout, and decide about them. Signing moves no money.',
  ].join('\n')
}

function unproven({ address }: Wallet, verdict: 'unsigned' | 'undeployed'): Problem {
  const pointer = '/signature'
  return verdict === 'unsigned'
    ? invalid({
        pointer,
        code: 'signature',
        detail: `Must be a signature of the challenge’s message by ${address}.`,
      })
    : invalid({
        pointer,
        code: 'wallet_not_deployed',
        detail: `${address} is a smart wallet that is deployed on none of this store’s networks, so nothing there can confirm its signature. Deploy it, for example by sending any transaction from it, then present the same signature again.`,
      })
}

function noChallenge(): Problem {
  return invalid({
    pointer: '/signature',
    code: 'challenge',
    detail: 'The wallet has no open challenge: it was used or has expired. Get a new one and sign that.',
  })
}

/** A store that has proven a wallet stays proven, even if the wallet is retired. New checkouts must see it. */
export async function noteStoreProven(tx: Transaction, storeId: StoreId, now: Date): Promise<void> {
  await tx.query(
    'update stores set proven_at = $2, revision = revision + 1 where id = $1 and proven_at is null',
    [storeId, now],
  )
}

type Challenge = { readonly text: string; readonly expiresAt: Date }

async function writeChallenge(
  db: Database,
  storeId: StoreId,
  walletId: WalletId,
  { text, expiresAt }: Challenge,
): Promise<Wallet | null> {
  const [row] = await db.query<Wallet>(
    `update wallets w set challenge = $3, challenge_expires_at = $4 where w.store_id = $1 and w.id = $2
     returning ${walletColumns}`,
    [storeId, walletId, text, expiresAt],
  )
  return row ?? null
}

async function readChallenge(
  db: Database,
  storeId: StoreId,
  walletId: WalletId,
): Promise<{ wallet: Wallet; challenge: Challenge | null } | null> {
  const [row] = await db.query<Wallet & { text: string | null; expiresAt: Date | null }>(
    `select ${walletColumns}, w.challenge as text, w.challenge_expires_at as "expiresAt"
     from wallets w where w.store_id = $1 and w.id = $2`,
    [storeId, walletId],
  )
  if (!row) return null
  const { text, expiresAt, ...wallet } = row
  return { wallet, challenge: text && expiresAt ? { text, expiresAt } : null }
}

/** Records a proof and ends its challenge, unless that has been answered or replaced in the meantime. */
async function writeProof(
  tx: Transaction,
  walletId: WalletId,
  challenge: string,
  now: Date,
): Promise<Wallet | null> {
  const [row] = await tx.query<Wallet>(
    `update wallets w set proven_at = coalesce(w.proven_at, $3), challenge = null, challenge_expires_at = null
     where w.id = $1 and w.challenge = $2 returning ${walletColumns}`,
    [walletId, challenge, now],
  )
  return row ?? null
}
