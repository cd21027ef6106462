import type { Context } from '../context.ts'
import { openBatcher } from '../database/batch.ts'
import type { Database } from '../database/db.ts'
import { openWaiters } from '../database/waiters.ts'
import type { CheckoutId } from '../ids.ts'
import { type CreditRow, creditFromJson, creditJson, type RawCredit } from '../payments/credits/credit.ts'
import type { Payment } from '../payments/payload.ts'
import { authorizationOf, contractRest, type InFlight, inFlightOf, liveCreditOf } from '../payments/rows.ts'
import type { Checkout } from './checkout.ts'
import { type CheckoutRow, isRestoringSql, toCheckout } from './rows.ts'

/** Everything that decides the answer to a payer. */
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
  /** The payer's payments in flight in the payment's asset. */
  readonly inFlight: InFlight
  /** Whether the chain shows a transfer by the presented authorization, although no checkout has claimed it. */
  readonly isUsed: boolean
  /** How far the payment's network was followed. */
  readonly headNumber: number | null
  /** The fees that settlements for the store have cost today on the payment's network. */
  readonly storeCost: bigint
  /** Whether a stranger signed up for the store and it has not proven a wallet. */
  readonly isStoreLimited: boolean
  /**
   * Until when this payer may not pay by signature, because it is a contract wallet with a payment that failed on the
   * chain.
   */
  readonly restsUntil: Date | null
  /** Whether the payment-identifier already names another authorization of this store. */
  readonly isIdentifierTaken: boolean
}

/** A question about a request to pay: the checkout and the payment. */
type PayQuestion = { readonly checkoutId: CheckoutId; readonly payment: Payment | null }

export type ReadPayView = (question: PayQuestion) => Promise<PayView | null>

const viewsPerStatement = 128

const viewStatementsMax = 2

/** Requests that arrive together share one statement. */
export function openPayViews({ db }: Context): ReadPayView {
  return openBatcher<PayQuestion, PayView | null>({
    run: (questions) => readPayViews(db, questions),
    runAlone: async (question) => (await readPayViews(db, [question]))[0] ?? null,
    itemsMax: viewsPerStatement,
    inFlightMax: viewStatementsMax,
  })
}

type ViewRow = {
  place: number
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
  in_flight_units: string
  in_flight_payments: number
  store_cost: string | null
  is_limited: boolean
  rests_until: Date | null
  is_used: boolean
  head_number: string | null
}

/** SQL: what decides the answers to the payers of checkouts. `checkout` is a subquery that gives the one of `i`. */
const viewSql = (
  checkout: string,
) => `select i.place::integer - 1 as place, c.*, s.name as store_name, s.signed_up and s.proven_at is null as is_limited, c.expires_at <= clock() as is_past_expiry,
       ${creditJson('e')} as exact, ${isRestoringSql} as is_restoring,
       a.state as known_state, a.checkout_id as known_checkout_id, a.reason as known_reason, ${creditJson('k')} as known_credit,
       (select b.hash from transaction_calls tc
        cross join lateral (select b.hash, b.created_at from broadcasts b where b.network = tc.network and b.settler = tc.settler
          and b.nonce = tc.settler_nonce offset 0) b
        where tc.network = a.network and tc.asset = a.asset and tc.payer = a.payer and tc.nonce = a.nonce
        order by b.created_at desc limit 1) as known_transaction, a.failed_at is not null as known_failed,
       in_flight.units as in_flight_units, in_flight.payments as in_flight_payments,
       (select g.spent from store_gas g where g.store_id = c.store_id and g.network = i.network
          and g.day = (clock() at time zone 'utc')::date) as store_cost,
       (select max(f.failed_at) + ${contractRest} from authorizations f where f.network = i.network
          and f.payer = i.payer and f.is_contract and f.failed_at > clock() - ${contractRest}) as rests_until,
       i.nonce is not null and a.nonce is null and exists (select 1 from credits u where u.network = i.network
         and u.asset = i.asset and u.payer = i.payer and u.nonce = i.nonce and u.orphaned_at is null
         union all select 1 from kept_credits x where x.key = nonce_key(i.network, i.asset, i.payer, i.nonce)
         offset 0) as is_used,
       (select f.head_number from followers f where f.network = i.network) as head_number,
       i.identifier is not null and exists (select 1 from authorizations o where o.store_id = c.store_id
         and o.payment_identifier = i.identifier and (o.network, o.asset, o.payer, o.nonce, o.checkout_id)
           is distinct from (i.network, i.asset, i.payer, i.nonce, c.id) offset 0) as is_identifier_taken
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       with ordinality as i (checkout_id, network, asset, payer, nonce, identifier, place)
     cross join lateral (${checkout}) c
     join stores s on s.id = c.store_id
     left join lateral (select * from credits e where e.checkout_id = c.id and e.disposition = 'exact'
       and e.orphaned_at is null offset 0) e on true
     left join ${authorizationOf('i')} on true
     cross join ${inFlightOf('i')}
     left join ${liveCreditOf('a')} on k.checkout_id = c.id or (k.checkout_id is null and a.checkout_id = c.id
       and 'landed_by_another' in (a.spent_reason, a.reason))`

function viewInputs(questions: readonly PayQuestion[]): unknown[] {
  return [
    questions.map(({ checkoutId }) => checkoutId),
    ...(['network', 'asset', 'payer', 'nonce', 'identifier'] as const).map((field) =>
      questions.map(({ payment }) => payment?.[field] ?? null),
    ),
  ]
}

/** Reads what each of these requests needs, in one statement. Null for a checkout that does not exist. */
export async function readPayViews(
  db: Database,
  questions: readonly PayQuestion[],
): Promise<(PayView | null)[]> {
  const rows = await db.query<CheckoutRow & ViewRow>(
    viewSql('select * from checkouts c where c.id = i.checkout_id offset 0'),
    viewInputs(questions),
  )
  const views: (PayView | null)[] = questions.map(() => null)
  for (const row of rows) views[row.place] = toView(row, toCheckout(row))
  return views
}

/** The same for a checkout that is not inserted yet. Null if its store is gone. */
export async function readDraftView(
  db: Database,
  checkout: Checkout,
  payment: Payment | null,
): Promise<PayView | null> {
  const { id: checkoutId, storeId, options, expiresAt } = checkout
  const [row] = await db.query<ViewRow>(
    viewSql(
      'select i.checkout_id as id, $7::text as store_id, $8::json as options, $9::timestamptz as expires_at',
    ),
    [...viewInputs([{ checkoutId, payment }]), storeId, JSON.stringify(options), expiresAt],
  )
  return row ? toView(row, checkout) : null
}

function toView(row: ViewRow, checkout: Checkout): PayView {
  return {
    checkout,
    storeName: row.store_name,
    isPastExpiry: row.is_past_expiry,
    isRestoring: row.is_restoring,
    payment: row.exact && creditFromJson(row.exact),
    isIdentifierTaken: row.is_identifier_taken,
    inFlight: { units: BigInt(row.in_flight_units), payments: row.in_flight_payments },
    storeCost: BigInt(row.store_cost ?? '0'),
    isStoreLimited: row.is_limited,
    restsUntil: row.rests_until,
    isUsed: row.is_used,
    headNumber: row.head_number === null ? null : Number.parseInt(row.head_number, 10),
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

const pollMs = 500

/** Waits for checkouts to change. */
export type Outcomes = {
  /** Resolves when the checkout's version differs from this one, or after the timeout. */
  waitForChange(checkoutId: string, version: number, timeoutMs: number): Promise<void>
  close(): void
}

export function openOutcomes(ctx: Context): Outcomes {
  const waiters = openWaiters<{ readonly checkoutId: string; readonly version: number }, true>(
    ctx.db.wakeUps,
    {
      channel: 'outcomes',
      everyMs: pollMs,
      now: ctx.now,
      async find(waiting) {
        const changed = await findChanged(ctx.db, waiting)
        return waiting.map((_, place) => changed.has(place) || null)
      },
      onError: (error) =>
        ctx.log.warn({ err: error }, 'could not read which checkouts changed; trying again within 500 ms'),
    },
  )
  return {
    async waitForChange(checkoutId, version, timeoutMs) {
      await waiters.wait({ checkoutId, version }, timeoutMs)
    },
    close: waiters.close,
  }
}

/** Returns the positions of the checkouts whose version has changed. */
async function findChanged(
  db: Database,
  waiting: readonly { readonly checkoutId: string; readonly version: number }[],
): Promise<Set<number>> {
  const rows = await db.query<{ place: number }>(
    `select i.place::integer - 1 as place
     from unnest($1::text[], $2::integer[]) with ordinality as i (id, version, place)
     cross join lateral (select c.version from checkouts c where c.id = i.id offset 0) c
     where c.version <> i.version`,
    [waiting.map(({ checkoutId }) => checkoutId), waiting.map(({ version }) => version)],
  )
  return new Set(rows.map(({ place }) => place))
}
