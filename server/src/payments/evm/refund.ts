import { setTimeout as wait } from 'node:timers/promises'
import { readStates } from '../../chains/evm/accounts.ts'
import { showEvmAddress } from '../../chains/evm/address.ts'
import { type Block, type Chain, type ChainLog, readIsContract } from '../../chains/evm/chain.ts'
import { digest, readTransfers } from '../../chains/evm/eip3009.ts'
import { recoverSigner } from '../../chains/evm/recover.ts'
import { readSignature } from '../../chains/evm/signature.ts'
import type { SignedTransfer } from '../../chains/evm/simulate.ts'
import { readInclusion } from '../../chains/evm/transactions.ts'
import { judge, readAccounts } from '../../chains/evm/witnesses.ts'
import type { Hex } from '../../chains/hex.ts'
import { readDeepBlock, readFollower, readTip } from '../../chains/rows.ts'
import { isNodeError, RpcAnswerError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { unitsToText } from '../../money.ts'
import type { EvmNetwork } from '../../networks.ts'
import { Problem } from '../../problems.ts'
import { toSafeNumber } from '../../safe-number.ts'
import { giveUpSpent, hasFailedLately, type WrittenHandOut, writeHandOut } from '../hand-outs.ts'
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
} from '../rail.ts'
import { readRestoredAt } from '../reconcile.ts'
import type { EvmVerifier } from './verify.ts'

/**
 * Refunds on EVM chains: an EIP-3009 authorization in the other direction. The nonce follows from the payment, not from
 * our ids, and the token accepts it once. Amount and recipient are fixed per nonce. So the money moves at most once, no
 * matter what is signed and how often.
 *
 *   write    the row: from then on the follower records any use of the nonce, and proofs of death wait for it
 *   look up  whether the nonce is unused at the last block read by then: any later use is read with the row in place
 *   hand out the typed data
 */
const hourSeconds = 3_600
const daySeconds = 24 * hourSeconds

/** The owners of a contract wallet sign one by one. */
const windowSeconds = { ordinary: hourSeconds, contract: 7 * daySeconds } as const
/** If less time than this is left, a new window is opened, because the signer may need it. */
const renewedSeconds = { ordinary: 10 * 60, contract: daySeconds } as const
/** If less time than this is left, a refund may not be mined in time. */
const remainingSecondsMin = 10
/** The most that our clocks may differ from each other and from the chain's. */
const skewSeconds = 60
/** Nodes get a block at slightly different times, so they are asked several times. */
const lookTries = 8
const lookEveryMs = 250

export function openRefunds(verifier: EvmVerifier): RefundRail {
  return {
    isPaidOnce: true,
    prepare: (ctx, order, commit) => prepare(ctx, verifier, order, commit),
    verify: (ctx, handed, presented, inFlightUnits) =>
      verify(ctx, verifier, handed, presented, inFlightUnits),
  }
}

async function prepare(
  ctx: Context,
  { chain, hasCode }: EvmVerifier,
  order: RefundOrder,
  commit: CommitHandOut,
): Promise<ToSign> {
  const isContract = await hasCode(order.wallet as Hex, 'recently')
  // An account that has delegated itself may be ordinary again by the time of a restore. A restore must know how long
  // to wait.
  const [isForGood = false] = isContract ? await readIsContract(chain, [order.wallet as Hex]) : []
  const kind = isForGood ? 'contract' : 'ordinary'
  await refuseAfterRestore(ctx, chain, isForGood)
  const spent: string[] = []
  for (;;) {
    const seconds = BigInt(Math.floor(ctx.now().getTime() / 1_000))
    const window = {
      isContract,
      validBefore: seconds + BigInt(windowSeconds[kind]),
      renewedBefore: seconds + BigInt(renewedSeconds[kind]),
    }
    let written: WrittenHandOut | null = null
    let followed = order
    await commit(async (tx, current) => {
      const { caip2 } = chain.network
      followed = current
      written = null
      if (spent.length > 0) await giveUpSpent(tx, caip2, current, spent)
      const { taken } = current
      const isTaken = taken !== null && !spent.includes(taken)
      const free = isTaken ? [taken] : current.nonces.filter((nonce) => !spent.includes(nonce))
      for (const nonce of free) {
        written = await writeHandOut(tx, caip2, current, { ...window, nonce })
        if (written) return written.nonce
      }
      if (isTaken) throw usedBefore()
      return null
    })
    const handOut = written as WrittenHandOut | null
    if (!handOut) throw new Problem('refund_slots_used', 'All refund nonces of this payment are used.')
    if (!(await readIsUsed(ctx, chain, followed, handOut.nonce))) return toSign(chain, followed, handOut)
    if (!handOut.isNew) throw usedBefore()
    spent.push(handOut.nonce)
  }
}

function usedBefore(): Problem {
  return new Problem(
    'unavailable',
    'The authorization that was prepared before was used or canceled on the chain. The refund continues once that is final.',
    { retryAfterSeconds: 30 },
  )
}

/**
 * The end of the last window that may have been handed out before the database was restored, for contract and for
 * ordinary wallets; null if it was never restored.
 */
export async function readForgottenWindows(
  ctx: Context,
  network: string,
): Promise<((isContract: boolean) => Date) | null> {
  const restoredAt = await readRestoredAt(ctx.db, network)
  if (restoredAt === null) return null
  return (isContract) => {
    const seconds = windowSeconds[isContract ? 'contract' : 'ordinary'] + skewSeconds
    return new Date(restoredAt.getTime() + seconds * 1_000)
  }
}

/**
 * A restored database lacks the authorizations handed out before, which may still be signed and used. So nothing else
 * is handed out until every block in which they could be used was read.
 */
async function refuseAfterRestore(ctx: Context, chain: Chain, isContract: boolean): Promise<void> {
  const { caip2 } = chain.network
  const endsAt = (await readForgottenWindows(ctx, caip2))?.(isContract)
  if (!endsAt) return
  const deep = await readDeepBlock(ctx.db, chain.network)
  if (deep && deep.time > endsAt) return
  throw new Problem(
    'unavailable',
    `The database was restored. Until ${endsAt.toISOString()}, a refund that was signed before may still arrive, so no refund can be prepared. Nothing was done.`,
    { retryAfterSeconds: 60 },
  )
}

/** Whether a nonce is used at the last block that was read. Enough nodes must agree. */
async function readIsUsed(
  ctx: Context,
  chain: Chain,
  { asset, wallet }: RefundOrder,
  nonce: string,
): Promise<boolean> {
  const tip = await readTip(ctx.db, chain.network.caip2)
  const asked = [{ asset, authorization: { from: wallet as Hex, nonce: nonce as Hex } }]
  for (let i = 0; tip && i < lookTries; i++) {
    const [isUsed = null] = await readStates(chain, tip.hash, asked).catch((error) => {
      // No node has the block yet.
      if (error instanceof RpcAnswerError) return []
      throw error
    })
    if (isUsed !== null) return isUsed
    await wait(lookEveryMs)
  }
  throw new Problem(
    'unavailable',
    'Too few nodes answered whether this refund was already paid. Nothing was prepared.',
    { retryAfterSeconds: 5 },
  )
}

/** In the form that `eth_signTypedData_v4` takes. */
function toSign(
  chain: Chain,
  { asset, wallet, recipient, amount }: RefundOrder,
  { nonce, validBefore }: WrittenHandOut,
): ToSign {
  const { name, version } = domainOf(chain.network, asset)
  const uint = 'uint256'
  return {
    expiresAt: new Date(toSafeNumber(validBefore) * 1_000),
    typedData: {
      domain: {
        name,
        version,
        chainId: chain.chainId,
        verifyingContract: showEvmAddress(asset),
      },
      types: {
        EIP712Domain: [
          { name: 'name', type: 'string' },
          { name: 'version', type: 'string' },
          { name: 'chainId', type: uint },
          { name: 'verifyingContract', type: 'address' },
        ],
        TransferWithAuthorization: [
          { name: 'from', type: 'address' },
          { name: 'to', type: 'address' },
          { name: 'value', type: uint },
          { name: 'validAfter', type: uint },
          { name: 'validBefore', type: uint },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'TransferWithAuthorization',
      message: {
        from: showEvmAddress(wallet),
        to: showEvmAddress(recipient),
        value: amount.toString(),
        validAfter: '0',
        validBefore: validBefore.toString(),
        nonce,
      },
    },
  }
}

function domainOf({ assets, caip2 }: EvmNetwork, asset: string) {
  const found = assets.find(({ address }) => address.toLowerCase() === asset)
  if (!found)
    throw new Problem('unavailable', `This deployment does not support the token ${asset} on ${caip2}.`)
  return found.domain
}

async function verify(
  ctx: Context,
  verifier: EvmVerifier,
  { transfer: handed }: Handed,
  presented: Presented,
  inFlightUnits: bigint,
): Promise<{ readonly transfer: SignedTransfer } | { readonly refusal: SignatureRefusal }> {
  const refuse = (code: string, detail: string) => ({ refusal: { code, detail } })
  const read = readSignature('signature' in presented ? presented.signature : null)
  if ('refusal' in read) return refuse('signature', `The signature of the typed data ${read.refusal}.`)
  const { signature, hasContractForm } = read
  const { chain, hasCode, simulate } = verifier
  const { asset } = handed
  const authorization = handed.authorization as SignedTransfer['authorization']
  const wallet = showEvmAddress(authorization.from)
  const seconds = BigInt(Math.floor(ctx.now().getTime() / 1_000))
  if (authorization.validBefore < seconds + BigInt(remainingSecondsMin))
    return refuse(
      'expired',
      'The signed authorization has expired. Prepare the refund again and sign the new one.',
    )
  const domain = {
    ...domainOf(chain.network, asset),
    chainId: chain.chainId,
    verifyingContract: asset as Hex,
  }
  const recovered = recoverSigner(digest(domain, authorization), Buffer.from(signature.slice(2), 'hex'))
  const isSigned = recovered?.address === authorization.from
  const isContract = await hasCode(authorization.from, isSigned ? 'recently' : 'now')
  if (!isSigned && !isContract && hasContractForm)
    return refuse(
      'wallet_not_deployed',
      `${wallet}, which received the payment, is a smart wallet that is not deployed on ${chain.network.name}, so nothing there can confirm its signature. Deploy it, for example by sending any transaction from it, then present the same signature again. Or send the refund yourself.`,
    )
  if (!isSigned && !isContract)
    return refuse(
      'wrong_signer',
      `${wallet}, which received the payment, has not signed this. Prepare the refund again and sign it with ${wallet}.`,
    )
  if (isContract && (await hasFailedLately(ctx.db, chain.network.caip2, authorization.from)))
    return refuse(
      'contract_wallet_failed',
      `A transfer signed by ${wallet} failed on the chain lately, so no settler sends its transfers for 30 days. Send the refund yourself.`,
    )
  const transfer: SignedTransfer = {
    asset,
    authorization,
    signature: isSigned && !isContract ? recovered.normalised : signature,
    isContract,
  }
  const simulated = await simulate(transfer, inFlightUnits)
  // Its owner may have sent it already: the logs decide.
  if (simulated.isNonceUsed) return { transfer }
  const needed = authorization.value + inFlightUnits
  if (simulated.balance < needed) {
    const { decimals, symbol } = tokenOf(chain.network, asset)
    const text = (units: bigint) => `${unitsToText(units, decimals)} ${symbol}`
    return refuse(
      'insufficient_balance',
      `${wallet} holds ${text(simulated.balance)}, but this refund and those in flight need ${text(needed)}. Add money to it, then present the same signature again.`,
    )
  }
  if (!simulated.isGood)
    return refuse('refused_by_token', describeRefusal(simulated.revertReason, isContract))
  return { transfer }
}

function tokenOf({ assets }: EvmNetwork, asset: string) {
  const found = assets.find(({ address }) => address.toLowerCase() === asset)
  return { decimals: found?.decimals ?? 6, symbol: found?.symbol ?? '' }
}

function describeRefusal(words: string, isContract: boolean): string {
  if (/signature/i.test(words) || (words === '' && isContract))
    return 'The wallet does not accept this signature for the prepared refund. Prepare it again and sign the new one.'
  if (/blacklist/i.test(words)) return 'The token blocks the wallet or the recipient.'
  if (/paused/i.test(words)) return 'The token is paused. Present the same signature again later.'
  return words === ''
    ? 'The token would refuse this transfer.'
    : `The token would refuse this transfer: ${words}.`
}

/** Honest providers name the same block. Each further one costs a request to every provider. */
const blocksMax = 4

/**
 * Looks for the transfer with which a store says it has paid a refund itself. Receipts only say where to look. The
 * transfer is read from the logs of a block that the follower knows as final, as enough providers report them. A
 * transfer by authorization never qualifies, so neither a signed refund nor a signed payment can count again.
 */
export async function findSent(ctx: Context, chain: Chain, sent: SentTransfer): Promise<SentLookUp> {
  try {
    return await lookFor(ctx, chain, sent)
  } catch (error) {
    if (!isNodeError(error)) throw error
    return { outcome: 'waiting' }
  }
}

async function lookFor(ctx: Context, chain: Chain, sent: SentTransfer): Promise<SentLookUp> {
  const { witnessesMin, caip2 } = chain.network
  const told = await readInclusion(chain, sent.transaction)
  if (told.numbers.length === 0) return { outcome: told.isAbsent ? 'unknown' : 'waiting' }
  const finalized = (await readFollower(ctx.db, caip2))?.finalizedNumber ?? 0
  const numbers = told.numbers.filter((number) => number <= finalized)
  let refusal: SentLookUp = { outcome: 'waiting' }
  for (const number of numbers.slice(0, blocksMax)) {
    const [accounts = []] = await readAccounts(chain, [{ number, hash: null }], false)
    const verdict = judge(accounts, witnessesMin)
    if (verdict.kind !== 'believed' || verdict.toldBy.length < witnessesMin) continue
    const { block } = verdict
    const logs = verdict.logs.filter(({ address }) => address === sent.asset)
    const isIn = logs.some(({ transactionHash }) => transactionHash === sent.transaction)
    // If only one provider named this block and the transaction is not in it, it may be in another block.
    if (isIn || told.number === number) {
      const judged = judgeTransfers(logs, block, sent)
      if (judged.outcome === 'found') return judged
      refusal = judged
    }
  }
  return refusal
}

function judgeTransfers(logs: readonly ChainLog[], block: Block, sent: SentTransfer): SentLookUp {
  const { plain, authorized } = readTransfers(logs)
  const isOurs = ({ transactionHash }: { transactionHash: Hex }) => transactionHash === sent.transaction
  const moved = plain.filter(isOurs)
  if (moved.length === 0) return refuse(authorized.some(isOurs) ? 'authorized' : 'no_transfer')
  const received = moved.filter(({ to }) => to === sent.recipient)
  if (received.length === 0) return refuse('other_recipient')
  const exact = received.filter(({ value }) => value === sent.amount)
  if (exact.length === 0) return refuse('other_amount')
  const own = exact.filter(({ payer }) => sent.wallets.includes(payer))
  if (own.length === 0) return refuse('other_wallet')
  // Block times are whole seconds.
  if (block.time.getTime() + 1_000 <= sent.notBefore.getTime()) return refuse('too_old')
  return {
    outcome: 'found',
    block: block.hash,
    transfers: own.map(({ logIndex, payer }) => ({ place: logIndex, from: payer })),
    at: block.time,
    creditedAs: null,
  }
}

function refuse(why: SentRefusal): SentLookUp {
  return { outcome: 'refused', why }
}
