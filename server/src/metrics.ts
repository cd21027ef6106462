import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { version } from './version.ts'

export type Metrics = ReturnType<typeof openMetrics>

/** The outcomes of a payment. Each is counted when it is committed. */
export const paymentOutcomes = [
  'claimed',
  'credited',
  'late',
  'overpaid',
  'underpaid',
  'unmatched',
  'refused',
  'failed',
  'reorged',
  'reversed',
] as const

/** The outcomes of a refund. Each is counted when it is committed. */
export const refundOutcomes = ['completed', 'failed', 'canceled', 'reorged'] as const

/**
 * Metrics for operators. No label holds the id of a store, checkout or payer, so the number of series stays small,
 * however many there are; a deployment has a handful of settlers. Each series carries the cell. The table in
 * docs/reference.md is generated from this, in this order.
 */
export function openMetrics(labels: Readonly<Record<'cell', string>> | null = null) {
  const registry = new Registry()
  if (labels) registry.setDefaultLabels(labels)
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  new Gauge({
    name: 'farthing_build_info',
    help: 'Always 1; the labels say which version of Farthing runs.',
    labelNames: ['version', 'commit'],
    registers,
  }).set(version, 1)
  return {
    registry,
    ...requestMetrics(registers),
    ...paymentMetrics(registers),
    ...settlerMetrics(registers),
    ...chainMetrics(registers),
    ...eventMetrics(registers),
    ...processMetrics(registers),
  }
}

function requestMetrics(registers: Registry[]) {
  return {
    requests: new Histogram({
      name: 'http_server_request_duration_seconds',
      help: 'Time from the request’s headers to the end of the response.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    problems: new Counter({
      name: 'farthing_problems_total',
      help: 'Refused requests by problem code. internal_error is a bug of ours.',
      labelNames: ['code'],
      registers,
    }),
    fairQueue: new Gauge<'listener' | 'of' | 'state'>({
      name: 'farthing_fair_queue',
      help: 'Changes by keys (listener api) and requests of members (console) that are being handled in this process, or wait because their store or member has used all its places. Those that wait hold no connection to the database.',
      labelNames: ['listener', 'of', 'state'],
      registers,
    }),
    shareRefusals: new Counter<'listener' | 'share'>({
      name: 'farthing_share_refusals_total',
      help: 'Requests refused because their store or member had used up its share: of requests per second, of places in its queue (too many waited already), or of changes per hour before a wallet is proven. The log names the store or member.',
      labelNames: ['listener', 'share'],
      registers,
    }),
  }
}

/** Payments, and the refunds that take them back. */
function paymentMetrics(registers: Registry[]) {
  return {
    payments: new Counter<'network' | 'outcome'>({
      name: 'farthing_payments_total',
      help: 'Payments by outcome: claimed; credited (in a block, and applied to its checkout); late, overpaid, underpaid, unmatched (in a block, and the store decides); refused (never sent); failed (sent or claimed, and can never be paid); reorged (its block was replaced); reversed (for good). One payment can have several, and credited again if a reorganisation moved it to another block.',
      labelNames: ['network', 'outcome'],
      registers,
    }),
    paymentSeconds: new Histogram({
      name: 'farthing_payment_seconds',
      help: 'Time from the claim of a payment to its credit, which is when we have read its block.',
      labelNames: ['network'],
      buckets: [0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 20, 30, 60, 300],
      registers,
    }),
    paymentGas: new Histogram({
      name: 'farthing_payment_gas',
      help: 'Gas per payment of each mined transaction: its gas divided by its payments. Only on networks whose fees are counted in gas.',
      labelNames: ['network'],
      buckets: [40_000, 50_000, 60_000, 70_000, 80_000, 90_000, 100_000, 125_000, 150_000, 200_000, 500_000],
      registers,
    }),
    settlementCost: new Counter({
      name: 'farthing_settlement_cost_total',
      help: 'What mined transactions cost, in the network’s native currency. Only on networks whose fees are counted in gas.',
      labelNames: ['network'],
      registers,
    }),
    paymentCost: new Gauge({
      name: 'farthing_payment_cost',
      help: 'What a payment cost on average in the last 24 hours, in the network’s native currency.',
      labelNames: ['network', 'settler'],
      registers,
    }),
    canSettle: new Gauge({
      name: 'farthing_can_settle',
      help: '1 if payments can be settled on a network now; 0 while they are refused with 503. The log says why.',
      labelNames: ['network'],
      registers,
    }),
    unmatched: new Gauge({
      name: 'farthing_unmatched_payments',
      help: 'Payments of a cent or more that belong to no checkout and that no store has dismissed. Counted up to 10,000.',
      labelNames: ['network', 'asset'],
      registers,
    }),
    unmatchedAmount: new Gauge({
      name: 'farthing_unmatched_amount',
      help: 'The sum of these payments, in tokens.',
      labelNames: ['network', 'asset'],
      registers,
    }),
    refunds: new Counter<'network' | 'outcome'>({
      name: 'farthing_refunds_total',
      help: 'Refunds by outcome: completed (a block shows its transfer), failed (signed, and can never be paid), canceled (a signature for it would be worthless), reorged (its block was replaced). One that was reorged is completed again.',
      labelNames: ['network', 'outcome'],
      registers,
    }),
    refundsWaiting: new Gauge<'network' | 'status'>({
      name: 'farthing_refunds_waiting',
      help: 'Refunds that a store has signed and no transaction carries yet (SIGNED), or that are on their way (SENT). Counted up to 10,000.',
      labelNames: ['network', 'status'],
      registers,
    }),
  }
}

function settlerMetrics(registers: Registry[]) {
  return {
    settlerBalance: new Gauge({
      name: 'farthing_settler_balance',
      help: 'What a settler holds, in the network’s native currency.',
      labelNames: ['network', 'settler'],
      registers,
    }),
    settlerUnfunded: new Gauge({
      name: 'farthing_settler_unfunded',
      help: '1 while nodes refuse a settler’s transactions because it cannot pay for them.',
      labelNames: ['network', 'settler'],
      registers,
    }),
    settlerStopped: new Gauge({
      name: 'farthing_settler_stopped',
      help: '1 while a settler is stopped because a transaction that is not ours used one of its nonces.',
      labelNames: ['network', 'settler'],
      registers,
    }),
    paymentsLeft: new Gauge({
      name: 'farthing_settler_payments_left',
      help: 'How many payments a settler can settle before payers are refused.',
      labelNames: ['network', 'settler'],
      registers,
    }),
    hoursLeft: new Gauge({
      name: 'farthing_settler_hours_left',
      help: 'How long a settler’s balance lasts at the rate of the last 24 hours. Absent if it spent nothing.',
      labelNames: ['network', 'settler'],
      registers,
    }),
  }
}

/** Chains and their nodes. */
function chainMetrics(registers: Registry[]) {
  return {
    headAge: new Gauge({
      name: 'farthing_chain_head_age_seconds',
      help: 'Time since the head of a chain last moved. Beyond 30 seconds, or 60 while nobody needed it, payments are refused.',
      labelNames: ['network'],
      registers,
    }),
    reorganisations: new Counter({
      name: 'farthing_reorganisations_total',
      help: 'How often blocks that we had read were replaced.',
      labelNames: ['network'],
      registers,
    }),
    nodeAnswers: new Counter<'network' | 'provider'>({
      name: 'farthing_node_answers_total',
      help: 'Requests that a node answered.',
      labelNames: ['network', 'provider'],
      registers,
    }),
    nodeFailures: new Counter<'network' | 'provider'>({
      name: 'farthing_node_failures_total',
      help: 'Requests that a node did not answer, or answered with an error of its server.',
      labelNames: ['network', 'provider'],
      registers,
    }),
    nodeDispute: new Gauge({
      name: 'farthing_node_dispute',
      help: '1 while the providers of a network contradict each other and payments are refused.',
      labelNames: ['network'],
      registers,
    }),
    unreadable: new Counter({
      name: 'farthing_unreadable_transactions_total',
      help: 'Transactions that name the reference of a checkout and cannot be read: see the log, a payer may have paid.',
      labelNames: ['network'],
      registers,
    }),
    contradictions: new Counter({
      name: 'farthing_provider_contradictions_total',
      help: 'Times that a node provider contradicted the others and was overruled.',
      labelNames: ['network', 'provider'],
      registers,
    }),
  }
}

/** Events, and their delivery by webhook. */
function eventMetrics(registers: Registry[]) {
  return {
    eventsSequenced: new Counter({
      name: 'farthing_events_sequenced_total',
      help: 'Events that received their sequence number.',
      registers,
    }),
    eventLogsHeld: new Gauge({
      name: 'farthing_event_logs_held',
      help: 'Stores whose events could not be numbered when this process last tried. They get no events and no webhooks; all others do.',
      registers,
    }),
    deliveryTries: new Counter({
      name: 'farthing_delivery_tries_total',
      help: 'Webhook delivery tries by outcome: delivered; retried (failed, and tried again later); undeliverable (the last try failed); lost (its outcome could not be recorded, or another try overtook it).',
      labelNames: ['outcome'],
      registers,
    }),
    deliveryLag: new Histogram({
      name: 'farthing_delivery_lag_seconds',
      help: 'Time from when a webhook delivery was due to the start of its try. If it reaches seconds, start another work.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
      registers,
    }),
    deliveriesOut: new Gauge({
      name: 'farthing_deliveries_out',
      help: 'Webhook deliveries in progress in this process, at most 2,000. Near that, many receivers hang.',
      registers,
    }),
  }
}

/** Work that belongs to no payment. */
function processMetrics(registers: Registry[]) {
  return {
    checkoutsExpired: new Counter({
      name: 'farthing_checkouts_expired_total',
      help: 'Checkouts that expired unpaid.',
      registers,
    }),
    idempotentReplays: new Counter({
      name: 'farthing_idempotency_replays_total',
      help: 'Requests answered with the stored response of an earlier one.',
      registers,
    }),
    batchRows: new Histogram({
      name: 'farthing_group_commit_rows',
      help: 'Rows per group commit. Near 128, the database is the bottleneck.',
      labelNames: ['statement'],
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    }),
    livePages: new Gauge({
      name: 'farthing_live_pages',
      help: 'Payment pages that this process updates over a live connection, at most LIVE_CONNECTIONS_MAX.',
      registers,
    }),
    rateAge: new Gauge({
      name: 'farthing_rate_age_seconds',
      help: 'Age of each rate source’s newest rates when they were last loaded. It stays the same while loading fails.',
      labelNames: ['source'],
      registers,
    }),
    taskFailures: new Counter({
      name: 'farthing_task_failures_total',
      help: 'Failed runs of background tasks, which are retried.',
      labelNames: ['task'],
      registers,
    }),
  }
}
