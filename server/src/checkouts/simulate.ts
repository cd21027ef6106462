import type { SimulatedCase, Simulated as Wire } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import type { Rail } from '../payments/rail.ts'
import { reserveTransfer } from '../payments/transfers/reserve.ts'
import { Problem, problems } from '../problems.ts'
import type { Option } from './checkout.ts'
import { closedProblem, type PayEngine, payCheckout } from './pay.ts'
import { type CheckoutView, isPayable, readView } from './view.ts'

/**
 * Makes something happen to a test store's checkout, in the ways in which it happens without us: a payer asks to pay, a
 * buyer reserves an amount and sends money, time passes. So everything that follows is what follows a real payment.
 * Returns what the payer was told, or null if nobody asked to pay.
 */
export async function simulate(
  ctx: Context,
  engine: PayEngine,
  /** Any store's for null: whoever knows a checkout's id may pay it. */
  { storeId, checkoutId }: { readonly storeId: StoreId | null; readonly checkoutId: string },
  what: SimulatedCase,
): Promise<Wire['answer']> {
  const view = await readView(ctx, checkoutId)
  if (!view || (storeId !== null && view.checkout.storeId !== storeId))
    throw new Problem('not_found', 'No such checkout.')
  const { checkout } = view
  const [rail, offer] = findSimulated(engine, view)
  const { payment, isExpiring, send } = rail.simulate(offer, what)
  if (payment) return await present(ctx, engine, checkoutId, payment)
  if (!isPayable(view)) throw closedProblem(checkout)
  if (send) await reserve(ctx, rail, checkoutId, offer)
  if (isExpiring && !(await expireNow(ctx, checkoutId))) throw closedProblem(checkout)
  await send?.(ctx, { checkoutId, storeId: checkout.storeId })
  return null
}

type Simulating = Rail & Required<Pick<Rail, 'simulate'>>

const simulates = (rail: Rail): rail is Simulating => rail.simulate !== undefined && rail.providers > 0

function findSimulated(
  { rails }: PayEngine,
  { checkout, store }: CheckoutView,
): readonly [Simulating, Option] {
  const rail = [...rails.values()].find(simulates)
  const offer = checkout.options.find(({ network }) => network === rail?.network.caip2)
  if (!rail || !offer || store.mode !== 'test')
    throw new Problem('not_simulated', 'This checkout is not offered on the simulated network.')
  return [rail, offer]
}

/** Does not wait for an outcome: the events tell it. */
async function present(
  ctx: Context,
  engine: PayEngine,
  checkoutId: string,
  payment: NonNullable<ReturnType<Simulating['simulate']>['payment']>,
): Promise<Wire['answer']> {
  const resourceUrl = `${ctx.config.checkoutPageUrl}/${checkoutId}`
  const request = {
    ...{ resourceUrl, patienceMs: 0 },
    payment: { kind: 'present', payment, quote: null },
    // Refusals slow down who they come from, and every payer here is another.
    address: payment.payer,
  } as const
  try {
    const answer = await payCheckout(ctx, engine, checkoutId, request)
    switch (answer.kind) {
      case 'paid':
        return { status: 200, error: null }
      case 'pending':
        return { status: 202, error: 'settlement_pending' }
      case 'required':
        return { status: 402, error: answer.refused?.reason ?? null }
    }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { status: problems[error.code][0], error: error.code }
  }
}

/** As a buyer does on the page who pays from an exchange. */
async function reserve(ctx: Context, rail: Rail, checkoutId: string, offer: Option): Promise<void> {
  const { network, asset, payTo, amount } = offer
  const outcome = await reserveTransfer(ctx, rail, {
    ...{ checkoutId, network, price: BigInt(amount) },
    ...{ asset: toStored(network, asset), payTo: toStored(network, payTo) },
  })
  if (outcome !== 'reserved')
    throw new Problem(
      'settlement_unavailable',
      'No amount could be reserved for a transfer. Is work running?',
      {
        retryAfterSeconds: 1,
      },
    )
}

/** Ends the time of an open checkout of a test store. False if it was not open. */
async function expireNow(ctx: Context, checkoutId: string): Promise<boolean> {
  const rows = await ctx.db.query(
    `update checkouts c set expires_at = clock(), page_version = c.page_version + 1 from stores s
     where c.id = $1 and s.id = c.store_id and s.mode = 'test' and c.status = 'OPEN' and c.expires_at > clock()
     returning c.id`,
    [checkoutId],
  )
  return rows.length > 0
}
