import { createHash } from 'node:crypto'
import type { CheckoutPayment, Disposition, RefundWay } from '@farthing/sdk'
import { toShown } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { isId } from '../ids.ts'
import { creditFromJson, creditJson, type RawCredit, toCheckoutPayment } from '../payments/credits/credit.ts'
import type { Store } from '../stores/store.ts'
import type { Checkout } from './checkout.ts'
import { type CheckoutRow, isRestoringSql, toCheckout } from './rows.ts'

/** Everything that the payment page and its live feed show to anybody who knows the checkout's id. */
export type CheckoutView = {
  readonly checkout: Checkout
  /** Past its expiry by the database's clock, even if its status is not EXPIRED yet. */
  readonly isPastExpiry: boolean
  readonly isRestoring: boolean
  readonly store: Pick<Store, 'name' | 'mode' | 'accentColor' | 'supportEmail' | 'supportUrl'> & {
    /** The logo is an image, not a link. */
    readonly hasLogo: boolean
  }
  /** The exact live credit, if there is one. */
  readonly payment: (CheckoutPayment & { readonly payTo: string; readonly paidAt: Date }) | null
  /** Refunds of that payment. */
  readonly refunds: readonly ShownRefund[]
  /** The last transaction that was sent, while its outcome is unknown. */
  readonly pending: { readonly network: string; readonly transaction: string } | null
  /** Amounts reserved for plain transfers to this checkout. */
  readonly transfers: readonly ReservedTransfer[]
  /** Transactions that a buyer named on the page and that we are looking for. */
  readonly announced: readonly string[]
  /** Payments that arrived but did not complete the checkout. Those that the store has only dismissed are left out. */
  readonly notes: readonly Note[]
}

export type ReservedTransfer = {
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** Units of the asset. */
  readonly amount: string
  readonly payTo: string
  /** Identifies the transfer on networks whose transfers can carry a reference. On others the amount does. */
  readonly reference: string | null
  readonly expiresAt: Date
}

export type Note = {
  readonly disposition: Disposition
  readonly network: string
  readonly asset: string
  readonly amount: string
  /** The amount that was expected there. */
  readonly due: string
  readonly transaction: string
  readonly refunds: readonly ShownRefund[]
  /** The store has dismissed it, or all of it was refunded. */
  readonly isSettled: boolean
}

/** A refund that was sent, completed or declared. Before that, only the store knows of it. */
export type ShownRefund = {
  readonly status: 'SENT' | 'COMPLETED' | 'DECLARED'
  readonly way: RefundWay
  /** Units of the payment's asset. */
  readonly amount: string
  /** Null only for a declared refund. */
  readonly recipient: string | null
  /** The store's reason. */
  readonly reason: string | null
  readonly transaction: string | null
}

/** How much of a payment was refunded, counting only refunds that a block shows. */
export function returnedOf(paid: string, refunds: readonly ShownRefund[]): 'nothing' | 'part' | 'all' {
  const returned = refunds.reduce(
    (sum, { status, amount }) => (status === 'COMPLETED' ? sum + BigInt(amount) : sum),
    0n,
  )
  return returned === 0n ? 'nothing' : returned < BigInt(paid) ? 'part' : 'all'
}

/** Limits the list on the page, in case somebody sends many payments by mistake or to annoy. */
const notesMax = 20
/** More than five refunds of one payment are rare, but a store can send any number itself. */
const refundsMax = 20

const isRefundShown = "f.status in ('SENT', 'COMPLETED', 'DECLARED')"

/** A dismissed payment is not shown, unless it was refunded. */
const isNoteShown = `(k.dismissed_at is null
  or exists (select 1 from refunds f where f.payment_id = k.payment_id and f.store_id = c.store_id and ${isRefundShown}))`

/** One index lookup per payment that the page shows. */
function refundsJson(paymentId: string): string {
  return `(select json_agg(json_build_object('status', f.status, 'way', f.way, 'amount', f.amount::text, 'recipient', f.recipient,
    'reason', f.reason, 'transaction', f.transaction_hash) order by f.id)
    from (select * from refunds f where f.payment_id = ${paymentId} and f.store_id = c.store_id and ${isRefundShown}
      order by f.id limit ${refundsMax}) f)`
}

/** Null if there is no such checkout. */
export async function readView(ctx: Context, checkoutId: string): Promise<CheckoutView | null> {
  if (!isId('ch', checkoutId)) return null
  const [row] = await ctx.db.query<
    CheckoutRow & {
      is_past_expiry: boolean
      is_restoring: boolean
      store: CheckoutView['store']
      exact: RawCredit | null
      pending: CheckoutView['pending']
      announced: string[] | null
      transfers: Omit<ReservedTransfer, 'expiresAt'>[] | null
      refunds: ShownRefund[] | null
      notes:
        | (Omit<Note, 'refunds' | 'isSettled'> & { isDismissed: boolean; refunds: ShownRefund[] | null })[]
        | null
    }
  >(
    `select c.*, c.expires_at <= clock() as is_past_expiry, ${isRestoringSql} as is_restoring,
       json_build_object('name', s.name, 'mode', s.mode, 'hasLogo', coalesce(s.logo_url like 'data:%', false),
         'accentColor', s.accent_color, 'supportEmail', s.support_email, 'supportUrl', s.support_url) as store,
       ${creditJson('e')} as exact,
       ${refundsJson('e.payment_id')} as refunds,
       (select json_build_object('network', b.network, 'transaction', b.hash) from authorizations a
          join transaction_calls t on t.network = a.network and t.asset = a.asset and t.payer = a.payer
            and t.nonce = a.nonce
          join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.settler_nonce
        where a.checkout_id = $1 and a.state = 'sent' and c.status = 'PROCESSING'
        order by b.created_at desc limit 1) as pending,
       (select json_agg(json_build_object('network', r.network, 'asset', r.asset, 'amount', r.amount::text,
          'payTo', r.pay_to, 'reference', r.reference) order by r.network, r.asset)
        from reserved_amounts r where r.checkout_id = $1 and r.freed_at is null) as transfers,
       (select json_agg(distinct p.transaction_hash) from pasted_transactions p
        where p.checkout_id = $1 and p.outcome = 'looking') as announced,
       (select json_agg(json_build_object('disposition', n.disposition, 'network', n.network, 'asset', n.asset,
          'amount', n.amount::text, 'due', coalesce(r.amount, o.amount, n.amount)::text, 'transaction', n.transaction_hash, 'isDismissed', n.dismissed_at is not null, 'refunds', ${refundsJson('n.payment_id')})
          order by n.block_number, n.log_index)
        from (
          select k.disposition, k.network, k.asset, k.amount, k.transaction_hash, k.block_number, k.log_index, k.payment_id,
            k.dismissed_at
          from credits k where k.checkout_id = $1 and k.orphaned_at is null and k.disposition <> 'exact'
            and ${isNoteShown}
          union all
          select h.disposition, k.network, k.asset, k.amount, k.transaction_hash, k.block_number, k.log_index, k.payment_id,
            k.dismissed_at
          from payment_hints h join credits k on k.payment_id = h.payment_id
            and k.orphaned_at is null and k.checkout_id is null and ${isNoteShown}
          where h.checkout_id = $1
          limit ${notesMax}
        ) n
        left join json_to_recordset(c.options) as o (network text, asset text, amount numeric)
          on o.network = n.network and lower(o.asset) = lower(n.asset)
        left join reserved_amounts r on r.checkout_id = $1 and r.network = n.network and r.asset = n.asset
       ) as notes
     from checkouts c join stores s on s.id = c.store_id
     left join credits e on e.checkout_id = $1 and e.disposition = 'exact' and e.orphaned_at is null
     where c.id = $1`,
    [checkoutId],
  )
  if (!row) return null
  const credit = row.exact && creditFromJson(row.exact)
  const payment = credit && {
    ...toCheckoutPayment(credit),
    payTo: toShown(credit.network, credit.payTo),
    paidAt: credit.firstBlockTime,
  }
  return {
    checkout: toCheckout(row),
    isPastExpiry: row.is_past_expiry,
    isRestoring: row.is_restoring,
    store: row.store,
    payment,
    refunds: credit ? toRefunds(credit.network, row.refunds) : [],
    pending: payment ? null : row.pending,
    announced: row.announced ?? [],
    transfers: (row.transfers ?? []).map((transfer) => ({
      ...transfer,
      asset: toShown(transfer.network, transfer.asset),
      payTo: toShown(transfer.network, transfer.payTo),
      expiresAt: row.expires_at,
    })),
    notes: (row.notes ?? []).map(({ isDismissed, ...note }) => {
      const refunds = toRefunds(note.network, note.refunds)
      return {
        ...note,
        asset: toShown(note.network, note.asset),
        refunds,
        isSettled: isDismissed || returnedOf(note.amount, refunds) === 'all',
      }
    }),
  }
}

function toRefunds(network: string, refunds: readonly ShownRefund[] | null): ShownRefund[] {
  return (refunds ?? []).map(({ recipient, ...refund }) => ({
    ...refund,
    recipient: recipient && toShown(network, recipient),
  }))
}

/** Whether the checkout can be paid now. */
export function isPayable({ checkout, isPastExpiry }: CheckoutView): boolean {
  return checkout.status === 'OPEN' && !isPastExpiry
}

/** Whether a plain transfer was asked for and may still pay it. */
export function awaitsTransfer(view: CheckoutView): boolean {
  return isPayable(view) && view.transfers.length > 0
}

/** The networks on which it can be paid now. None unless it is open. */
export function payableOn(view: CheckoutView | null): string[] {
  return view && isPayable(view) ? view.checkout.options.map(({ network }) => network) : []
}

/** Changes whenever there is something new to show. */
export function digestOf({ checkout, isPastExpiry, payment, ...view }: CheckoutView): string {
  const shown = [
    checkout.status,
    checkout.status === 'OPEN' && isPastExpiry,
    payment?.transaction,
    view.refunds,
    view.pending,
    view.transfers,
    view.announced,
    view.notes,
  ]
  return createHash('sha256').update(JSON.stringify(shown)).digest('base64url').slice(0, 16)
}

/**
 * Finds which of these checkouts have something new for their pages, and their new stamps. A stamp changes whenever the
 * page would change: it contains the versions, whether the time has passed, whether a payment was sent, and, once the
 * checkout is over, the state of its refunds. While it can still be paid, a page learns of refunds only when it is
 * loaded.
 */
export async function findChangedPages(
  db: Database,
  watched: readonly { readonly checkoutId: string; readonly stamp: string }[],
): Promise<{ checkoutId: string; stamp: string }[]> {
  return await db.query<{ checkoutId: string; stamp: string }>(
    `select id as "checkoutId", stamp from (
       select c.id, i.stamp as before, concat_ws('.', c.version, c.page_version, case c.status
         when 'OPEN' then (c.expires_at <= clock())::text
         when 'PROCESSING' then exists (select 1 from authorizations a where a.checkout_id = c.id and a.state = 'sent'
           offset 0)::text
         else (select sum(f.version)::text from refunds f where f.checkout_id = c.id)
         end) as stamp
       from unnest($1::text[], $2::text[]) as i (id, stamp)
       cross join lateral (select * from checkouts c where c.id = i.id offset 0) c
     ) now where stamp <> before`,
    [watched.map(({ checkoutId }) => checkoutId), watched.map(({ stamp }) => stamp)],
  )
}
