import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof openMetrics>

/**
 * Metrics for operators. No label holds the id of a store, checkout or payer, so the number of series stays small,
 * however many there are; a deployment has a handful of settlers.
 */
export function openMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    requests: new Histogram({
      name: 'http_server_request_duration_seconds',
      help: 'Time from the request’s headers to the end of the response.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    problems: new Counter({
      name: 'farthing_problems_total',
      help: 'Refused requests by problem code.',
      labelNames: ['code'],
      registers,
    }),
    batchRows: new Histogram({
      name: 'farthing_group_commit_rows',
      help: 'Rows per group commit.',
      labelNames: ['statement'],
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    }),
    idempotentReplays: new Counter({
      name: 'farthing_idempotency_replays_total',
      help: 'Requests answered with the stored response of an earlier one.',
      registers,
    }),
    eventsSequenced: new Counter({
      name: 'farthing_events_sequenced_total',
      help: 'Events that received their sequence number.',
      registers,
    }),
    deliveryTries: new Counter({
      name: 'farthing_delivery_tries_total',
      help: 'Webhook delivery tries by outcome: delivered, pending (to be retried), undeliverable, lost.',
      labelNames: ['outcome'],
      registers,
    }),
    deliveryLag: new Histogram({
      name: 'farthing_delivery_lag_seconds',
      help: 'Time from when a delivery was due to the start of its try.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
      registers,
    }),
    deliveriesOut: new Gauge({
      name: 'farthing_deliveries_out',
      help: 'Webhook deliveries in progress in this process.',
      registers,
    }),
    checkoutsExpired: new Counter({
      name: 'farthing_checkouts_expired_total',
      help: 'Checkouts that expired unpaid.',
      registers,
    }),
    livePages: new Gauge({
      name: 'farthing_live_pages',
      help: 'Payment pages that are updated over a live connection.',
      registers,
    }),
    rateAge: new Gauge({
      name: 'farthing_rate_age_seconds',
      help: 'Age of each rate source’s newest rates when they were last loaded.',
      labelNames: ['source'],
      registers,
    }),
    nodeDispute: new Gauge({
      name: 'farthing_node_dispute',
      help: '1 while the providers of a network contradict each other and payments are refused.',
      labelNames: ['network'],
      registers,
    }),
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
    paymentCost: new Gauge({
      name: 'farthing_payment_cost',
      help: 'What a payment cost on average in the last 24 hours, in the network’s native currency.',
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
      help: 'How long a settler’s balance lasts at the rate of the last 24 hours.',
      labelNames: ['network', 'settler'],
      registers,
    }),
    contradictions: new Counter({
      name: 'farthing_provider_contradictions_total',
      help: 'Looks at the chain in which a provider of nodes contradicted others and was not believed.',
      labelNames: ['network', 'provider'],
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
