import { createHash } from 'node:crypto'
import type { CheckoutPayment, Disposition } from '@farthing/sdk'
import { toShown } from '../chains/families.ts'
import type { Context } from '../context.ts'
import { isId } from '../ids.ts'
import { creditFromJson, creditJson, type RawCredit, toCheckoutPayment } from '../payments/credits/credit.ts'
import type { Quote } from '../rates/quote.ts'
import type { Store } from '../stores/store.ts'
import type { Checkout } from './checkout.ts'
import { type CheckoutRow, isRestoringSql, toCheckout } from './rows.ts'

/** Everything that the payment page and its live feed show to anyone who knows the checkout's id. */
export type CheckoutView = {
  readonly checkout: Checkout
  /** Past its expiry by the database's clock, even if its status is not EXPIRED yet. */
  readonly isPastExpiry: boolean
  readonly isRestoring: boolean
  /** How the price was converted; null if it needed no rate. */
  readonly rate: Rate | null
  readonly store: Pick<Store, 'name' | 'mode' | 'accentColor' | 'supportEmail' | 'supportUrl'> & {
    /** The logo is an image, not a link to one. */ readonly hasLogo: boolean
  }
  /** The exact live credit, if there is one. */
  readonly payment: (CheckoutPayment & { readonly payTo: string; readonly paidAt: Date }) | null
  /** The last transaction sent, while its outcome is unknown. */
  readonly pending: { readonly network: string; readonly transaction: string } | null
  /** Amounts reserved for plain transfers to this checkout. */
  readonly transfers: readonly ReservedTransfer[]
  /** Transactions that a buyer named on the page and that are being looked for. */
  readonly announced: readonly string[]
  /** Payments that arrived but did not complete the checkout, without those that the store has dismissed. */
  readonly notes: readonly Note[]
}

/** price × usdPerBase ÷ perBase = US dollars. */
type Rate = Pick<Quote, 'perBase' | 'usdPerBase'>

export type ReservedTransfer = {
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** Units of the asset. */
  readonly amount: string
  readonly payTo: string
  /** Identifies the transfer, if transfers on this network can carry a reference; otherwise the amount does. */
  readonly reference: string | null
  readonly expiresAt: Date
}

export type Note = {
  readonly disposition: Disposition
  readonly network: string
  readonly asset: string
  readonly amount: string
  /** What was expected there. */
  readonly due: string
  readonly transaction: string
}

/** Limits what a page lists if someone sends many payments by mistake or out of spite. */
const notesMax = 20

/** Returns null if there is no such checkout. */
export async function readView(ctx: Context, checkoutId: string): Promise<CheckoutView | null> {
  if (!isId('ch', checkoutId)) return null
  const [row] = await ctx.db.query<
    CheckoutRow & {
      is_past_expiry: boolean
      is_restoring: boolean
      store_name: string
      store_mode: Store['mode']
      has_logo: boolean
      accent_color: string | null
      support_email: string | null
      support_url: string | null
      rate: Rate | null
      exact: RawCredit | null
      pending: CheckoutView['pending']
      announced: string[] | null
      transfers: Omit<ReservedTransfer, 'expiresAt'>[] | null
      notes: Note[] | null
    }
  >(
    `select c.*, c.expires_at <= clock() as is_past_expiry, ${isRestoringSql} as is_restoring,
       s.name as store_name, s.mode as store_mode,
       coalesce(s.logo_url like 'data:%', false) as has_logo,
       s.accent_color, s.support_email, s.support_url, ${creditJson('e')} as exact,
       (select json_build_object('network', b.network, 'transaction', b.hash) from authorizations a
          join transaction_calls t on t.network = a.network and t.asset = a.asset and t.payer = a.payer
            and t.nonce = a.nonce
          join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.settler_nonce
        where a.checkout_id = c.id and a.state = 'sent'
        order by b.created_at desc limit 1) as pending,
       (select json_agg(json_build_object('network', r.network, 'asset', r.asset, 'amount', r.amount::text,
          'payTo', r.pay_to, 'reference', r.reference) order by r.network, r.asset)
        from reserved_amounts r where r.checkout_id = c.id and r.freed_at is null) as transfers,
       (select json_agg(distinct p.transaction_hash) from pasted_transactions p
        where p.checkout_id = c.id and p.outcome = 'looking') as announced,
       (select json_agg(json_build_object('disposition', n.disposition, 'network', n.network, 'asset', n.asset,
          'amount', n.amount::text, 'due', coalesce(r.amount, o.amount, n.amount)::text, 'transaction', n.transaction_hash) order by n.block_number, n.log_index)
        from (
          select k.disposition, k.network, k.asset, k.amount, k.transaction_hash, k.block_number, k.log_index
          from credits k where k.checkout_id = c.id and k.orphaned_at is null and k.disposition <> 'exact'
            and k.dismissed_at is null
          union all
          select h.disposition, k.network, k.asset, k.amount, k.transaction_hash, k.block_number, k.log_index
          from payment_hints h join credits k on k.payment_id = h.payment_id
            and k.orphaned_at is null and k.checkout_id is null and k.dismissed_at is null
          where h.checkout_id = c.id
          limit ${notesMax}
        ) n
        left join json_to_recordset(c.options) as o (network text, asset text, amount numeric)
          on o.network = n.network and lower(o.asset) = lower(n.asset)
        left join reserved_amounts r on r.checkout_id = c.id and r.network = n.network and r.asset = n.asset
       ) as notes
     from checkouts c join stores s on s.id = c.store_id
     left join credits e on e.checkout_id = c.id and e.disposition = 'exact' and e.orphaned_at is null
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
    rate: row.rate,
    store: {
      name: row.store_name,
      mode: row.store_mode,
      hasLogo: row.has_logo,
      accentColor: row.accent_color,
      supportEmail: row.support_email,
      supportUrl: row.support_url,
    },
    payment,
    pending: payment ? null : row.pending,
    announced: row.announced ?? [],
    transfers: (row.transfers ?? []).map((transfer) => ({
      ...transfer,
      asset: toShown(transfer.network, transfer.asset),
      payTo: toShown(transfer.network, transfer.payTo),
      expiresAt: row.expires_at,
    })),
    notes: (row.notes ?? []).map((note) => ({ ...note, asset: toShown(note.network, note.asset) })),
  }
}

/** Whether the checkout can be paid now. */
export function isPayable({ checkout, isPastExpiry }: CheckoutView): boolean {
  return checkout.status === 'OPEN' && !isPastExpiry
}

/** Changes whenever there is something new to show. */
export function digestOf({ checkout, isPastExpiry, payment, ...view }: CheckoutView): string {
  const shown = [
    checkout.status,
    checkout.status === 'OPEN' && isPastExpiry,
    payment?.transaction,
    view.pending,
    view.transfers,
    view.announced,
    view.notes,
  ]
  return createHash('sha256').update(JSON.stringify(shown)).digest('base64url').slice(0, 16)
}
