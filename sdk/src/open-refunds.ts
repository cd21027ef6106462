import type { EvmSigner } from './agent/evm.ts'
import { isSolana, type Signer } from './agent/sign.ts'
import type { SolanaSigner } from './agent/solana.ts'
import { FarthingError } from './errors.ts'
import { type List, openList, type PageQuery } from './list.ts'
import { checkRefund, checkTypedData, RefundMismatch, type RefundTerms } from './refund-check.ts'
import { checkRefundTransaction } from './refund-solana.ts'
import { type Calls, path, type RequestOptions } from './request.ts'
import { delayMs, wait } from './wait.ts'
import type {
  AddressRequestLink,
  CreateRefund,
  NameTransaction,
  PreparedRefund,
  PresentRefund,
  Refund,
  RefundStatus,
} from './wire.ts'

export type RefundQuery = PageQuery & {
  readonly paymentId?: string
  readonly checkoutId?: string
  readonly status?: RefundStatus
}

export type CreateRefundOptions = RequestOptions & {
  /**
   * Identifies this refund, for example by your return number. Calling again with the same key returns the same refund.
   * By default every call generates its own key, which covers the SDK's retries but not a second call of yours.
   */
  readonly idempotencyKey?: string
}

export type WaitOptions = RequestOptions & {
  /** How long to wait for the outcome. */
  readonly waitMs?: number
  /** Called with the refund whenever its status has changed. */
  readonly onProgress?: (refund: Refund) => void
}

export type SignRefundOptions = WaitOptions & {
  /** Where the SDK records what was signed for each refund. Default: this process's memory. */
  readonly kept?: KeptRefunds
}

/**
 * A record of what was signed for each refund. If it is on disk, a second run of a program signs nothing else for the
 * same refund. A server that asks for something else wants to be paid twice.
 */
export type KeptRefunds = {
  /** What is recorded for the refund. */
  get(refundId: string): string | undefined | Promise<string | undefined>
  /** Records it, unless something was recorded for the refund before. Returns what is recorded. */
  keep(refundId: string, signedWith: string): string | Promise<string>
}

const waitMsDefault = 120_000
/** Statuses that only a reorganisation of the chain can change. */
const ended: readonly RefundStatus[] = ['COMPLETED', 'DECLARED', 'FAILED', 'CANCELED']
/** If one process signs more refunds than this, only the last ones are remembered. */
const rememberedMax = 10_000

/** Money that goes back from the store's wallet. */
export function openRefunds({ send, get: read, change }: Calls) {
  const memory = openMemory()
  const get = (refundId: string, options?: RequestOptions): Promise<Refund> =>
    read(path`/refunds/${refundId}`, options)
  const prepare = (refundId: string, options?: RequestOptions): Promise<PreparedRefund> =>
    change(path`/refunds/${refundId}/prepare`, undefined, options)
  const present = (refundId: string, body: PresentRefund, options?: RequestOptions): Promise<Refund> =>
    change(path`/refunds/${refundId}/signature`, body, options)

  const waitForEnd = async (
    refundId: string,
    { waitMs = waitMsDefault, onProgress, signal }: WaitOptions = {},
  ): Promise<Refund> => {
    const end = Date.now() + waitMs
    let last: RefundStatus | null = null
    for (let tries = 1; ; tries++) {
      const refund = await get(refundId, signal && { signal })
      if (refund.status !== last) onProgress?.(refund)
      last = refund.status
      const delay = delayMs(Math.min(tries, 4), null)
      if (ended.includes(refund.status) || signal?.aborted || Date.now() + delay > end) return refund
      await wait(delay, signal)
    }
  }

  return {
    /**
     * Requests a refund of a payment: all that is left of it, unless `amount` says less. No money moves before the
     * wallet that was paid has signed: see `sign`.
     */
    create: (
      paymentId: string,
      refund: CreateRefund = {},
      { idempotencyKey, signal }: CreateRefundOptions = {},
    ): Promise<Refund> =>
      send<Refund>({
        method: 'POST',
        path: path`/payments/${paymentId}/refunds`,
        body: refund,
        idempotencyKey: idempotencyKey ?? crypto.randomUUID(),
        isRepeatable: true,
        ...(signal && { signal }),
      }),
    get,
    list: (query?: RefundQuery): List<Refund> => openList(send, path`/refunds`, query),
    /**
     * Returns what the wallet has to sign. `sign` does this, compares it with what you want, and presents the
     * signature.
     */
    prepare,
    /** Presents the signature of what `prepare` returned. Repeating it changes nothing. */
    present,
    /**
     * Has the wallet that received the payment sign the refund, and presents the signature. Nothing is signed unless the server asks
     * for exactly `amount` to `recipient`: otherwise it throws a `RefundMismatch`. Calling it again is safe. With `waitMs`
     * it waits for the outcome; the answer may still be SIGNED or SENT if that takes longer.
     */
    async sign(
      refundId: string,
      wallet: Signer,
      terms: RefundTerms,
      { waitMs = 0, onProgress, signal, kept = memory }: SignRefundOptions = {},
    ): Promise<Refund> {
      if (!/^[1-9]\d{0,77}$/.test(terms.amount))
        throw new TypeError('amount must be a whole number of the asset’s smallest units, as a string.')
      const options = signal && { signal }
      let refund: Refund
      try {
        const prepared = await prepare(refundId, options)
        const signed = await signPrepared(refundId, prepared, wallet, terms, kept)
        refund = await present(refundId, signed, options)
      } catch (error) {
        // It was signed before, by another process or by an earlier call whose answer was lost; or it can't be signed,
        // because the store sends it by itself or no recipient has been named.
        if (!(error instanceof FarthingError) || error.code !== 'refund_in_progress') throw error
        refund = await get(refundId, options)
        if (refund.status === 'REQUESTED') throw error
        checkRefund({ refund }, refundId, terms)
      }
      if (ended.includes(refund.status) || waitMs === 0) {
        onProgress?.(refund)
        return refund
      }
      return await waitForEnd(refundId, { waitMs, ...(onProgress && { onProgress }), ...options })
    },
    /** Reads the refund until it has an outcome. Returns it as it is after `waitMs`, by default two minutes. */
    wait: waitForEnd,
    /** Names the transaction of a refund that the store sent by itself, or a reference to other evidence. */
    name: (refundId: string, body: NameTransaction): Promise<Refund> =>
      change(path`/refunds/${refundId}/transaction`, body),
    /**
     * Takes back a refund that is not signed. While a prepared signature could still be used, the answer has
     * `isCanceling`, and the refund is CANCELED later.
     */
    cancel: (refundId: string): Promise<Refund> => change(path`/refunds/${refundId}/cancel`),
    /** Makes a link at which the buyer names the address that they want the money at. A new link replaces it. */
    requestAddress: (refundId: string): Promise<AddressRequestLink> =>
      change(path`/refunds/${refundId}/address-request`),
  }
}

/** Has the wallet sign what the server prepared, if that is what the caller wants. */
async function signPrepared(
  refundId: string,
  prepared: PreparedRefund,
  wallet: Signer,
  terms: RefundTerms,
  kept: KeptRefunds,
): Promise<PresentRefund> {
  checkRefund(prepared, refundId, terms)
  if ('transaction' in prepared && isSolana(wallet))
    return { transaction: await signTransaction(refundId, prepared, wallet, terms, kept) }
  if (!('typedData' in prepared) || isSolana(wallet))
    throw new RefundMismatch('network', 'one that this wallet signs for', prepared.refund.network)
  const typedData = checkTypedData(prepared, wallet.address, terms, Date.now())
  const known = await kept.keep(refundId, typedData.message.nonce)
  if (known !== typedData.message.nonce)
    throw new RefundMismatch('message.nonce', known, typedData.message.nonce)
  return { signature: await (wallet as EvmSigner).signTypedData(typedData) }
}

/**
 * On Solana, two transactions for one refund would pay twice. So only the first that is signed in time counts. A
 * request to sign another is refused, and the caller creates the refund again instead.
 */
async function signTransaction(
  refundId: string,
  prepared: PreparedRefund & { readonly transaction: string },
  wallet: SolanaSigner,
  terms: RefundTerms,
  kept: KeptRefunds,
): Promise<string> {
  const bytes = await checkRefundTransaction(prepared, wallet.address, terms)
  const isOther = (known: string | undefined) => known !== undefined && known !== prepared.transaction
  const refuse = () => new RefundMismatch('transaction', 'the one that was signed before', 'another one')
  if (isOther(await kept.get(refundId))) throw refuse()
  const signed = await wallet.signTransaction(bytes)
  // It has not left this process, so another may be signed.
  if (Date.now() > Date.parse(prepared.expiresAt))
    throw new FarthingError({
      code: 'expired',
      detail: 'Signing took longer than the transaction lives. Nothing was presented: sign again.',
    })
  if (isOther(await kept.keep(refundId, prepared.transaction))) throw refuse()
  return btoa(String.fromCharCode(...signed))
}

/** Remembers in this process the nonce or the transaction that was signed for each refund. It never changes. */
function openMemory(): KeptRefunds {
  const signed = new Map<string, string>()
  return {
    get: (refundId) => signed.get(refundId),
    keep(refundId, signedWith) {
      const known = signed.get(refundId) ?? signedWith
      signed.set(refundId, known)
      const [oldest] = signed.keys()
      if (signed.size > rememberedMax && oldest !== undefined) signed.delete(oldest)
      return known
    },
  }
}
