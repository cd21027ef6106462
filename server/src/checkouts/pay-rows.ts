import type { Database } from '../database/db.ts'
import type { CheckoutId } from '../ids.ts'
import { type CreditRow, creditFromJson, creditJson, type RawCredit } from '../payments/credits/credit.ts'
import type { Payment } from '../payments/payload.ts'
import { contractRest } from '../payments/rows.ts'
import type { Checkout } from './checkout.ts'
import { type CheckoutRow, isRestoringSql, toCheckout } from './rows.ts'

/** Everything that decides the answer to a payer, in one query. */
export type PayView = {
  readonly checkout: Checkout
  readonly storeName: string
  readonly isPastExpiry: boolean
  readonly isRestoring: boolean
  /** The live exact credit. */
  readonly payment: CreditRow | null
  /** What we know about the presented authorization. */
  readonly known: {
    readonly checkoutId: string | null
    readonly state: 'claimed' | 'sent' | 'rejected' | 'dead'
    readonly reason: string | null
    readonly credit: CreditRow | null
    /** Hash of the transaction that was last signed for it. */
    readonly transaction: string | null
    /** Whether it was mined without effect. */
    readonly hasFailed: boolean
  } | null
  /** What settlements for the store have cost today on the payment's network. */
  readonly storeCost: bigint
  /** When this payer, a contract wallet one of whose payments failed on the chain, may pay by signature again. */
  readonly restsUntil: Date | null
  /** Whether the payment-identifier already names another authorization of this store. */
  readonly isIdentifierTaken: boolean
}

export async function readPayView(
  db: Database,
  checkoutId: CheckoutId,
  payment: Payment | null,
): Promise<PayView | null> {
  const [row] = await db.query<
    CheckoutRow & {
      store_name: string
      is_past_expiry: boolean
      is_restoring: boolean
      exact: RawCredit | null
      known_state: 'claimed' | 'sent' | 'rejected' | 'dead' | null
      known_checkout_id: string | null
      known_reason: string | null
      known_credit: RawCredit | null
      known_transaction: string | null
      known_failed: boolean | null
      is_identifier_taken: boolean
      store_cost: string | null
      rests_until: Date | null
    }
  >(
    `select c.*, s.name as store_name, c.expires_at <= clock() as is_past_expiry, ${creditJson('e')} as exact,
       ${isRestoringSql} as is_restoring,
       a.state as known_state, a.checkout_id as known_checkout_id, a.reason as known_reason, ${creditJson('k')} as known_credit,
       (select b.hash from transaction_calls tc join broadcasts b on b.network = tc.network and b.settler = tc.settler
          and b.nonce = tc.settler_nonce
        where tc.network = a.network and tc.asset = a.asset and tc.payer = a.payer and tc.nonce = a.nonce
        order by b.created_at desc limit 1) as known_transaction, a.failed_at is not null as known_failed,
       (select g.spent from store_gas g where g.store_id = c.store_id and g.network = $2
          and g.day = (clock() at time zone 'utc')::date) as store_cost,
       (select max(f.failed_at) + ${contractRest} from authorizations f where f.network = $2 and f.payer = $4
          and f.is_contract and f.failed_at > clock() - ${contractRest}) as rests_until,
       $6::text is not null and exists (select 1 from authorizations o where o.store_id = c.store_id
         and o.payment_identifier = $6 and (o.network, o.asset, o.payer, o.nonce, o.checkout_id)
           is distinct from ($2, $3, $4, $5, c.id)) as is_identifier_taken
     from checkouts c join stores s on s.id = c.store_id
     left join credits e on e.checkout_id = c.id and e.disposition = 'exact' and e.orphaned_at is null
     left join authorizations a on a.network = $2 and a.asset = $3 and a.payer = $4 and a.nonce = $5
     left join credits k on k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
       and k.orphaned_at is null and (k.checkout_id = c.id or (k.checkout_id is null and a.checkout_id = c.id
         and 'landed_by_another' in (a.spent_reason, a.reason)))
     where c.id = $1`,
    [
      checkoutId,
      payment?.network ?? null,
      payment?.asset ?? null,
      payment?.payer ?? null,
      payment?.nonce ?? null,
      payment?.identifier ?? null,
    ],
  )
  if (!row) return null
  return {
    checkout: toCheckout(row),
    storeName: row.store_name,
    isPastExpiry: row.is_past_expiry,
    isRestoring: row.is_restoring,
    payment: row.exact && creditFromJson(row.exact),
    isIdentifierTaken: row.is_identifier_taken,
    storeCost: BigInt(row.store_cost ?? '0'),
    restsUntil: row.rests_until,
    known: row.known_state && {
      checkoutId: row.known_checkout_id,
      state: row.known_state,
      reason: row.known_reason,
      credit: row.known_credit && creditFromJson(row.known_credit),
      transaction: row.known_transaction,
      hasFailed: row.known_failed === true,
    },
  }
}
