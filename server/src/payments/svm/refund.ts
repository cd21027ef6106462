import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { getBase58Encoder } from '@solana/kit'
import type { Hex } from '../../chains/hex.ts'
import { isNodeError, RpcUnavailableError } from '../../chains/rpc.ts'
import { parseSolanaAddress } from '../../chains/svm/address.ts'
import { readForPayment, type SvmChain } from '../../chains/svm/chain.ts'
import { type Landed, readLanded } from '../../chains/svm/landed.ts'
import { decodeTransaction, encodeTransaction, isSignedBy } from '../../chains/svm/message.ts'
import { findHindrance, type Hindrance } from '../../chains/svm/refund-accounts.ts'
import { countWith, findWithout, judge, readViews } from '../../chains/svm/status.ts'
import { findTokenAccount, readExact, tokenProgram } from '../../chains/svm/transfer.ts'
import { priceUnits, writeExact } from '../../chains/svm/write.ts'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { invalid, Problem } from '../../problems.ts'
import type {
  CommitHandOut,
  Handed,
  Presented,
  RefundOrder,
  RefundRail,
  SentLookUp,
  SentRefusal,
  SentTransfer,
  SignatureRefusal,
  ToSign,
  Transfer,
} from '../rail.ts'
import { readIsRestoring } from '../reconcile.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'
import { listUnknown } from './references.ts'
import type { FeePayers } from './rows.ts'
import { blockhashExpired, type Simulate } from './simulate.ts'

/**
 * Refunds on Solana. Tokens there have no nonces: a transfer that a wallet signs twice, with two blockhashes, moves
 * money twice. But it also needs the settler's signature, because the settler pays the fee and signs last. So each of a
 * payment's refund slots has one row in `authorizations`, with the slot's nonce as its key, and that row holds one
 * message:
 *
 *   prepared  the message was handed out to be signed. Its memo is the nonce, so that the chain shows the slot
 *   claimed   exactly this message came back, signed by the wallet: a lane may add the settler's signature
 *   sent      the settler has signed; the transaction is watched like a payment's
 *   dead      a finalized block is past the life of its blockhash, and no block contains it
 *
 * Another message replaces it only if it died before the wallet's signature was seen. A message that came back signed
 * fails with its refund when it dies, and its slot is not used again.
 */
export function openSvmRefunds(chain: SvmChain, feePayers: FeePayers, simulate: Simulate): RefundRail {
  const parts = { chain, feePayers, simulate }
  return {
    isPaidOnce: false,
    prepare: (ctx, order, commit) => prepare(ctx, parts, order, commit),
    verify: (_ctx, handed, presented, inFlightUnits) => verify(parts, handed, presented, inFlightUnits),
  }
}

type Parts = {
  readonly chain: SvmChain
  readonly feePayers: FeePayers
  readonly simulate: Simulate
}

/** How many blocks a blockhash lives. */
const blockhashBlocks = 150
/** Within this time, the height at which a blockhash expires is final. */
const deadSeconds = 45
/** Two requests for one refund may collide. A third try finds what the other has written. */
const triesMax = 3
const noSignature = new Uint8Array(64)

async function prepare(
  ctx: Context,
  parts: Parts,
  order: RefundOrder,
  commit: CommitHandOut,
): Promise<ToSign> {
  const { chain } = parts
  const network = chain.network.caip2
  await refuseWhileRestoring(ctx, network)
  for (let tries = 1; tries <= triesMax; tries++) {
    const handed = await readHandedMessage(ctx.db, network, order)
    if (handed) return await handOutAgain(parts, order, handed)
    const { nonce, isForgotten } = await findFreeSlot(ctx.db, network, order)
    if (isForgotten)
      throw new Problem(
        'refund_exceeds_payment',
        'The chain shows a refund of this payment from before the database was restored. Cancel this one, and create it again for what is left.',
      )
    if (nonce === null) throw new Problem('refund_slots_used', 'All refund slots of this payment are used.')
    const message = await makeMessage(parts, order, nonce)
    try {
      await commit(async (tx, current) => {
        // Recipient and amount were read before the lock, and must not have changed.
        const isSame = current.recipient === order.recipient && current.amount === order.amount
        if (!isSame || !(await writeMessage(tx, network, current, { ...message, nonce })))
          throw new TakenError()
        return nonce
      })
      return toSign(chain, message.bytes, ctx.now())
    } catch (error) {
      if (!(error instanceof TakenError)) throw error
    }
  }
  throw new Problem('unavailable', 'Another request is preparing this refund. Nothing was prepared.', {
    retryAfterSeconds: 5,
  })
}

/** The slot was taken, or the refund changed, between the read and the lock. Nothing may be written. */
class TakenError extends Error {
  override readonly name = 'TakenError'
}

/**
 * Refunds sent before the restore must be known first, because nothing on the chain keeps a refund from being paid
 * twice.
 */
async function refuseWhileRestoring(ctx: Context, network: string): Promise<void> {
  if (!(await readIsRestoring(ctx.db, network))) return
  throw new Problem(
    'unavailable',
    'The database was restored. Until everything sent before is found on the chain, no refund can be prepared. Nothing was done.',
    { retryAfterSeconds: 60 },
  )
}

/** Only one message may exist. It is handed out again while it can be used, and then we wait for its end. */
async function handOutAgain(parts: Parts, order: RefundOrder, handed: HandedMessage): Promise<ToSign> {
  const { reason } = await simulateBytes(parts, handed.bytes, 0n)
  if (reason === blockhashExpired)
    throw new Problem(
      'unavailable',
      'The transaction prepared before has expired unsigned. Another can be prepared once that is final, in less than a minute.',
      { retryAfterSeconds: deadSeconds },
    )
  if (reason !== null) throw toProblem(await explain(parts.chain, order, reason))
  return toSign(parts.chain, handed.bytes, handed.handedAt)
}

function toSign({ network }: SvmChain, bytes: Uint8Array, handedAt: Date): ToSign {
  return {
    transaction: Buffer.from(bytes).toString('base64'),
    expiresAt: new Date(handedAt.getTime() + blockhashBlocks * network.blockTimeMs),
  }
}

/** Builds the message for the wallet to sign, if it would move the money now. */
async function makeMessage(parts: Parts, order: RefundOrder, nonce: string) {
  const { chain, feePayers } = parts
  const { asset, wallet, recipient, amount } = order
  const token = chain.network.assets.find(({ address }) => address === asset)
  if (!token)
    throw new Problem('unavailable', `This deployment does not support ${asset} on ${chain.network.name}.`)
  const running = (await feePayers(chain.network.caip2)).filter(({ isAlive }) => isAlive)
  const place = createHash('sha256').update(nonce).digest().readUInt32BE() % Math.max(running.length, 1)
  const settler = running[place]?.address
  if (settler === undefined) throw new RpcUnavailableError('No settler is running.')
  const hindrance = await findHindrance(chain, { mint: asset, recipient, from: { wallet, amount } })
  if (hindrance) throw toProblem(hindrance)
  const lifetime = await readForPayment(chain, await findTokenAccount(wallet, asset))
  const bytes = await writeExact({
    ...lifetime,
    feePayer: settler,
    payer: wallet,
    mint: asset,
    decimals: token.decimals,
    payTo: recipient,
    amount,
    memo: nonce,
    unitPrice: priceUnits(chain.network, 0),
  })
  const { reason, validBefore } = await simulateBytes(parts, bytes, 0n)
  if (reason === blockhashExpired)
    throw new RpcUnavailableError('Nodes do not know the newest blockhash yet.')
  if (reason !== null) throw toProblem(await explain(chain, order, reason))
  return { bytes, settler, validBefore }
}

/**
 * Compares the presented transaction with the one handed out, byte for byte, and checks the wallet's signature. The
 * returned transfer contains only that signature.
 */
async function verify(
  parts: Parts,
  { transfer }: Handed,
  presented: Presented,
  inFlightUnits: bigint,
): Promise<{ readonly transfer: Transfer } | { readonly refusal: SignatureRefusal }> {
  const refuse = (code: string, detail: string) => ({ refusal: { code, detail } })
  const { asset, authorization, settler } = transfer
  const { from: wallet, to: recipient, value: amount } = authorization
  const expected = decodeTransaction(Buffer.from(transfer.signature.slice(2), 'hex'))
  assert(expected, 'what was handed out must be decodable')
  const text = 'transaction' in presented ? presented.transaction : ''
  const raw = Buffer.from(text, 'base64')
  const transaction = text !== '' && raw.toString('base64') === text ? decodeTransaction(raw) : null
  if (!transaction)
    return refuse('transaction', 'Must be the prepared transaction with the wallet’s signature, in base64.')
  if (!Buffer.from(transaction.message).equals(expected.message))
    return refuse(
      'other_transaction',
      'This differs from the transaction that was prepared last. Prepare the refund again and sign the new one unchanged.',
    )
  const [, signature] = transaction.signatures
  if (!signature || !isSignedBy(wallet, transaction.message, signature))
    return refuse('wrong_signer', `${wallet}, which received the payment, has not signed this.`)
  const known = (await parts.feePayers(parts.chain.network.caip2)).find(({ address }) => address === settler)
  if (!known?.isAlive) throw new RpcUnavailableError('The settler that the refund names is not running.')
  const bytes = encodeTransaction({ message: transaction.message, signatures: [noSignature, signature] })
  const { reason } = await simulateBytes(parts, bytes, inFlightUnits)
  if (reason === blockhashExpired)
    return refuse(
      'expired',
      'The signed transaction has expired. Prepare the refund again and sign the new one.',
    )
  if (reason !== null) {
    const { code, says } = await explain(parts.chain, { asset, wallet, recipient, amount }, reason)
    return refuse(code, says)
  }
  const hex: Hex = `0x${Buffer.from(bytes).toString('hex')}`
  return { transfer: { ...transfer, signature: hex, isContract: false } }
}

async function simulateBytes({ chain, simulate }: Parts, bytes: Uint8Array, inFlightUnits: bigint) {
  const transaction = decodeTransaction(bytes)
  assert(transaction, 'our own transaction must be decodable')
  const exact = readExact(transaction, chain.network)
  assert(!('refusal' in exact), 'a refund has the form of a payment')
  return await simulate(exact, transaction, inFlightUnits)
}

/** Why the chain would not execute a transfer, in words for the store. */
async function explain(
  chain: SvmChain,
  { asset, wallet, recipient, amount }: Pick<RefundOrder, 'asset' | 'wallet' | 'recipient' | 'amount'>,
  reason: string,
): Promise<Hindrance> {
  const found = await findHindrance(chain, { mint: asset, recipient, from: { wallet, amount } })
  if (found) return found
  const says =
    reason === 'insufficient_funds'
      ? 'The store’s wallet does not hold enough for this refund and those in flight.'
      : 'The chain would not execute the transfer.'
  return { code: reason, of: 'wallet', says }
}

function toProblem({ code, of, says }: Hindrance): Problem {
  return invalid({ pointer: of === 'recipient' ? '/recipient' : '/from', code, detail: says })
}

/** SQL for refunds on Solana. Each slot has one row, with the one message that a settler may sign for it. */

type HandedMessage = {
  readonly nonce: string
  /** The transaction without signatures. */
  readonly bytes: Buffer
  readonly handedAt: Date
}

/** The message that was handed out for a refund and is neither signed nor dead. */
async function readHandedMessage(
  db: Database | Transaction,
  network: string,
  { asset, wallet, refundId, nonces }: RefundOrder,
): Promise<HandedMessage | null> {
  const [row] = await db.query<HandedMessage>(
    `select nonce, signature as bytes, claimed_at as "handedAt" from authorizations
     where network = $1 and asset = $2 and payer = $3 and nonce = any($4) and refund_id = $5 and state = 'prepared'`,
    [network, asset, wallet, nonces, refundId],
  )
  return row ?? null
}

/** SQL: the refund's message died before the wallet's signature was seen, and no settler has signed it. */
const isFreed = (
  refundId: string,
) => `a.state = 'dead' and a.refund_id = ${refundId} and not exists (select 1 from refunds r where r.id = a.refund_id
  and r.signed_at is not null) and not exists (select 1 from transaction_calls c where c.network = a.network
  and c.asset = a.asset and c.payer = a.payer and c.nonce = a.nonce)`

/** SQL: a restore found a refund of this payment on the chain, and no refund in the database accounts for it yet. */
const isForgotten = (
  nonces: string,
) => `exists (select 1 from authorizations o where o.network = $1 and o.asset = $2
  and o.payer = $3 and o.nonce = any(${nonces}::text[]) and o.refund_id is null
  and not exists (select 1 from refunds r where r.nonce = o.nonce and r.ended_at is null))`

/**
 * The first slot that may get a message: one that was never used, or whose message is dead and belonged to the same
 * refund. Null if there is none. A slot never passes to another refund, even if nobody signed its message: a restored
 * database would take the other refund's payment for the first one's and not count it.
 */
async function findFreeSlot(
  db: Database | Transaction,
  network: string,
  { asset, wallet, refundId, nonces }: RefundOrder,
): Promise<{ readonly nonce: string | null; readonly isForgotten: boolean }> {
  const [row] = await db.query<{ nonce: string | null; isForgotten: boolean }>(
    `select ${isForgotten('$4')} as "isForgotten",
       (select i.nonce from unnest($4::text[]) with ordinality as i (nonce, place)
        left join lateral (select * from authorizations a where a.network = $1 and a.asset = $2 and a.payer = $3
          and a.nonce = i.nonce offset 0) a on true
        where a.nonce is null or (${isFreed('$5')})
        order by i.place limit 1) as nonce`,
    [network, asset, wallet, nonces, refundId],
  )
  return row ?? { nonce: null, isForgotten: false }
}

/**
 * Writes the message that is about to be handed out, under the refund's lock. False if the slot is not free: its row
 * has a message that may still move money, or has moved it.
 */
async function writeMessage(
  tx: Transaction,
  network: string,
  order: RefundOrder,
  message: {
    readonly nonce: string
    readonly bytes: Uint8Array
    readonly settler: string
    readonly validBefore: bigint
  },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into authorizations as a (network, asset, payer, nonce, store_id, refund_id, state, pay_to, amount,
       valid_after, valid_before, signature, settler, claimed_at)
     select $1, $2, $3, $4, $5, $6, 'prepared', $7, $8::numeric, 0, $9::numeric, $10, $11, clock()
     where not ${isForgotten('$12')}
     on conflict (payer, nonce, asset, network) do update set state = 'prepared', store_id = excluded.store_id,
       pay_to = excluded.pay_to, amount = excluded.amount, valid_before = excluded.valid_before,
       signature = excluded.signature, settler = excluded.settler, reason = null, resolved_at = null,
       claimed_at = clock()
       where ${isFreed('$6')}
     returning a.nonce`,
    [
      network,
      order.asset,
      order.wallet,
      message.nonce,
      order.storeId,
      order.refundId,
      order.recipient,
      order.amount.toString(),
      message.validBefore.toString(),
      message.bytes,
      message.settler,
      order.nonces,
    ],
  )
  return rows.length > 0
}

/** A transaction is named by its first signature: 64 bytes in base58. */
export function parseSignature(text: string): string | null {
  // 64 bytes are 64 to 88 characters; the limit also bounds the arithmetic.
  if (!/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text)) return null
  return getBase58Encoder().encode(text).length === 64 ? text : null
}

/**
 * Looks for the transfer with which a store says it has paid a refund itself: one of the transaction's own
 * instructions, ordered by a wallet of the store, between the wallets' own accounts for the token, in a block that
 * enough providers call final. If a settler paid the fee, the transaction is a payment or a signed refund, and never
 * counts again.
 */
export async function findSent(ctx: Context, chain: SvmChain, sent: SentTransfer): Promise<SentLookUp> {
  try {
    return await lookFor(ctx, chain, sent)
  } catch (error) {
    if (!isNodeError(error)) throw error
    return { outcome: 'waiting' }
  }
}

async function lookFor(ctx: Context, chain: SvmChain, sent: SentTransfer): Promise<SentLookUp> {
  const { caip2, witnessesMin } = chain.network
  const { views, isDisputed } = await readViews(
    chain,
    [sent.transaction],
    (_, told) => countWith(told, 0) < told.length,
  )
  if (isDisputed) return { outcome: 'waiting' }
  const { status, isDisputed: isDoubted } = judge(views, 0, witnessesMin)
  if (status === null && countWith(views, 0) === 0 && findWithout(views, 0, null).length >= witnessesMin)
    return { outcome: 'unknown' }
  if (isDoubted || status?.commitment !== 'finalized') return { outcome: 'waiting' }
  if (status.isFailed) return refuse('no_transfer')
  const [read] = await readLanded(chain, [sent.transaction])
  const landed = read?.fact
  if (!landed || landed.slot !== status.slot) return { outcome: 'waiting' }
  const settlers: readonly string[] = await listSettlerAddresses(ctx.db, caip2)
  if (settlers.includes(landed.transaction.accounts[0] ?? '')) return refuse('authorized')
  if ((await listUnknown(ctx.db, caip2, [sent.transaction])).length === 0) return refuse('credited')
  return await judgeTransfers(landed, sent)
}

async function judgeTransfers(landed: Landed, sent: SentTransfer): Promise<SentLookUp> {
  const { asset, amount } = sent
  const destination = await findTokenAccount(sent.recipient, asset)
  const sources = new Map<string, string>()
  // A store also has wallets of other families.
  for (const wallet of sent.wallets)
    if ('address' in parseSolanaAddress(wallet)) sources.set(await findTokenAccount(wallet, asset), wallet)
  const moved = readTransfers(landed)
  if (moved.length === 0) return refuse('no_transfer')
  const received = moved.filter(({ to }) => to === destination)
  if (received.length === 0) return refuse('other_recipient')
  const exact = received.filter(({ units }) => units === amount)
  // Money that went back in the same transaction does not count.
  if (exact.length === 0 || landed.gainOf(destination) < amount * BigInt(exact.length))
    return refuse('other_amount')
  const own = exact.filter(({ from, by }) => sources.get(from) === by)
  if (own.length === 0) return refuse('other_wallet')
  // Block times are whole seconds.
  if (landed.time.getTime() + 1_000 <= sent.notBefore.getTime()) return refuse('too_old')
  return {
    outcome: 'found',
    block: `${landed.slot}/${sent.transaction}`,
    transfers: own.map(({ place, by }) => ({ place, from: by })),
    at: landed.time,
    // On Solana one transaction is one credit, wherever in it the transfer is.
    creditedAs: 0,
  }
}

/** Transfer, and TransferChecked, which also names the mint between the two accounts. */
function readTransfers({ transaction }: Landed) {
  return transaction.instructions.flatMap(({ program, accounts, data }, place) => {
    const isChecked = data[0] === 12 && data.length === 10
    if (program !== tokenProgram || !(isChecked || (data[0] === 3 && data.length === 9))) return []
    const [from, to, by] = isChecked ? [accounts[0], accounts[2], accounts[3]] : accounts
    if (!from || !to || !by) return []
    return { place, from, to, by, units: Buffer.from(data).readBigUInt64LE(1) }
  })
}

function refuse(why: SentRefusal): SentLookUp {
  return { outcome: 'refused', why }
}
