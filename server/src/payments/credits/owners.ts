import { networks } from '../../networks.ts'

/**
 * SQL: who owns money that matches no checkout. Several stores may have registered the same wallet, so such a credit
 * has no store of its own. Its owners follow from the wallets whenever it is read: see `payment_owners` in the schema.
 */

/** The owners of credit `k` among the stores of a mode, which is SQL too. */
export function ownersOf(mode: string): string {
  return `payment_owners(k.pay_to, k.included_at, ${mode})`
}

/**
 * The same for one store ($1), wherever it is asked, also in the console, which sees no other store's wallets: null if
 * credit `k` is not the store's, else whether the store may decide about it.
 */
export function rightOf(mode: string): string {
  return `payment_right($1, k.pay_to, k.included_at, ${mode})`
}

/**
 * The checkouts of a store, which is SQL too, that an unmatched credit `k` may have been meant for. They are not deleted
 * while it is unmatched.
 */
export function hintsFor(storeId: string): string {
  return `(select json_agg(json_build_object('checkoutId', h.checkout_id, 'disposition', h.disposition)
    order by h.created_at, h.checkout_id) from payment_hints h join checkouts c on c.id = h.checkout_id
    where h.payment_id = k.payment_id and k.checkout_id is null and c.store_id = ${storeId}) as hints`
}

/**
 * Whether a store, which is SQL like the address and the mode, may have money that came to the address assigned by its
 * amount alone: unless others have proven that the wallet is theirs, and it has not.
 */
export function mayMatchAt(storeId: string, payTo: string, mode: string): string {
  return `(exists (select 1 from wallets w where w.store_id = ${storeId} and w.pay_to = ${payTo} and w.proven_at is not null)
    or not exists (select 1 from wallets w join stores s on s.id = w.store_id and s.mode = ${mode}
      where w.pay_to = ${payTo} and w.proven_at is not null))`
}

/** A store of test mode owns nothing on a live network, although an address is the same on all of them. */
export function modeOf(caip2: string): string {
  return networks.find((network) => network.caip2 === caip2)?.mode ?? ''
}

export function networksOf(mode: string): string[] {
  return networks.filter((network) => network.mode === mode).map(({ caip2 }) => caip2)
}
