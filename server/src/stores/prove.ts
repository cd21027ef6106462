import assert from 'node:assert/strict'
import type { Actor, ProveWallet, WalletChallenge, Wallet as WireWallet } from '@farthing/sdk'
import { judgeText } from '../chains/families.ts'
import { RpcAnswerError, RpcUnavailableError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { type Hold, keepHold } from '../directory/claim.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { isId, randomText, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { askForChange, lockStore, tell } from './change.ts'
import * as rows from './rows.ts'
import { noteStoreProven } from './standing-rows.ts'
import { claimsByProof, type Store, type Wallet, walletToWire } from './store.ts'
import { holdWallet } from './wallets.ts'

/** Several people may have to sign for a contract wallet. */
const challengeMinutes = 60
/** 5 bits each. */
const challengeLength = 26

/** Gives a wallet's holder something to sign. A new challenge replaces the one before. */
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
  const wallet = isId('wal', walletId)
    ? await rows.writeChallenge(ctx.db, store.id, walletId, challenge)
    : null
  if (!wallet) throw new Problem('not_found', 'No such wallet.')
  return {
    walletId: wallet.id,
    message: toMessage(ctx, store.id, wallet.address, challenge),
    expiresAt: challenge.expiresAt.toISOString(),
  }
}

/**
 * Records that the wallet's holder has signed the challenge. The message is built again from the store, the wallet and
 * this deployment's host, so a signature that was given for another of any of these proves nothing here. If the wallet
 * waited for that to be claimed by this cell, it is claimed, and put to use as it would have been when it was registered.
 */
export async function proveWallet(
  ctx: Context,
  store: Store,
  actor: Actor,
  walletId: string,
  { signature }: ProveWallet,
  now: Date,
): Promise<WireWallet> {
  const found = isId('wal', walletId) ? await rows.readChallenge(ctx.db, store.id, walletId) : null
  if (!found) throw new Problem('not_found', 'No such wallet.')
  const { wallet, challenge } = found
  if (!challenge || challenge.expiresAt <= now) throw noChallenge()
  const message = toMessage(ctx, store.id, wallet.address, challenge)
  const verdict = await judge(ctx, store, wallet, message, signature)
  if (verdict !== 'signed') throw unproven(wallet, verdict)
  const prove = async (tx: Transaction) => {
    const proven = await rows.writeProof(tx, wallet.id, challenge.text, now)
    if (!proven) throw noChallenge()
    await noteStoreProven(tx, store.id, now)
    return proven
  }
  if (wallet.retiredAt === null && claimsByProof(wallet)) {
    const hold = await holdWallet(ctx, store.mode, wallet.family, wallet.address, 'proof')
    assert(hold !== 'free', 'a claim with a basis is granted or refused')
    return await putToUse(ctx, store.id, actor, wallet, hold, prove, now)
  }
  return await ctx.db.transaction(async (tx) => {
    const wire = walletToWire(ctx, store.mode, await prove(tx))
    await appendEvent(tx, newEvent(ctx, store.id, actor, 'wallet.updated', { wallet: wire }, now))
    return wire
  })
}

async function putToUse(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  { id, family }: Wallet,
  hold: Hold,
  prove: (tx: Transaction) => Promise<Wallet>,
  now: Date,
): Promise<WireWallet> {
  const wire = await ctx.db.transaction(async (tx) => {
    const store = await lockStore(tx, storeId)
    await keepHold(tx, hold)
    const { retiredAt } = await prove(tx)
    if (retiredAt === null) {
      await rows.writeUnclaimed(tx, id, false)
      await askForChange(ctx, tx, store, actor, { kind: 'use', family, walletId: id }, now)
    }
    const used = await tell(ctx, tx, store, actor, 'wallet.updated', id, now)
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
    if (!(cause instanceof RpcUnavailableError) && !(cause instanceof RpcAnswerError)) throw cause
    throw new Problem(
      'unavailable',
      'The chain could not be asked whether this is a contract wallet that accepts the signature. Nothing was changed.',
      { retryAfterSeconds: 5, cause },
    )
  }
}

/** What the wallet shows to the person who signs. */
function toMessage(ctx: Context, storeId: StoreId, address: string, challenge: rows.Challenge): string {
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
