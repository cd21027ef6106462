import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof openMetrics>

/** What operators watch. No label ever holds an id: the number of series stays small whatever the number of stores. */
export function openMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    requests: new Histogram({
      name: 'http_server_request_duration_seconds',
      help: 'Time from the request’s headers to the end of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    problems: new Counter({
      name: 'farthing_problems_total',
      help: 'Refusals by code.',
      labelNames: ['code'],
      registers,
    }),
    batchRows: new Histogram({
      name: 'farthing_group_commit_rows',
      help: 'Rows that one group commit carried.',
      labelNames: ['statement'],
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    }),
    idempotentReplays: new Counter({
      name: 'farthing_idempotency_replays_total',
      help: 'Requests answered with the stored answer of an earlier one.',
      registers,
    }),
    eventsSequenced: new Counter({
      name: 'farthing_events_sequenced_total',
      help: 'Events that were given their place in their store’s log.',
      registers,
    }),
    deliveryTries: new Counter({
      name: 'farthing_delivery_tries_total',
      help: 'Tries to deliver a webhook by what came of them: delivered, retry, undeliverable, lost.',
      labelNames: ['outcome'],
      registers,
    }),
    deliveryLag: new Histogram({
      name: 'farthing_delivery_lag_seconds',
      help: 'Time from when a delivery was due to when its try began.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
      registers,
    }),
    deliveriesOut: new Gauge({
      name: 'farthing_deliveries_out',
      help: 'Webhooks that this process has under way.',
      registers,
    }),
    checkoutsExpired: new Counter({
      name: 'farthing_checkouts_expired_total',
      help: 'Checkouts that ran out unpaid.',
      registers,
    }),
    livePages: new Gauge({
      name: 'farthing_live_pages',
      help: 'Payment pages that are kept up to date by a connection.',
      registers,
    }),
    rateAge: new Gauge({
      name: 'farthing_rate_age_seconds',
      help: 'Age of each rate source’s newest rates when they were last loaded.',
      labelNames: ['source'],
      registers,
    }),
    taskFailures: new Counter({
      name: 'farthing_task_failures_total',
      help: 'Runs of background work that failed and will be tried again.',
      labelNames: ['task'],
      registers,
    }),
  }
}
