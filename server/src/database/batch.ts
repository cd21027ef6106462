import assert from 'node:assert/strict'

/**
 * Combines calls into batches without a timer: items that arrive while a batch is in flight leave together in the next
 * one, and an item that arrives alone leaves at once. Each caller gets its own result once its batch is done. For
 * statements this is group commit; reads and RPC calls share round trips in the same way.
 */
export function openBatcher<Item, Result>(options: {
  /** Runs a batch and returns the result of each item, in order. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>
  /** Runs one item of a failed batch. The batch may have taken effect, so a write must recognise its own earlier row. */
  readonly runAlone: (item: Item) => Promise<Result>
  readonly itemsMax: number
  readonly inFlightMax: number
  /** While a batch is in flight, another one leaves only with at least this many items; 1 by default. */
  readonly furtherItemsMin?: number
  readonly observe?: (items: number) => void
}): (item: Item) => Promise<Result> {
  type Waiting = { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }
  const furtherItemsMin = options.furtherItemsMin ?? 1
  let waiting: Waiting[] = []
  let inFlight = 0
  let isScheduled = false

  function flush(): void {
    while (waiting.length >= (inFlight === 0 ? 1 : furtherItemsMin) && inFlight < options.inFlightMax) {
      const batch = waiting.slice(0, options.itemsMax)
      waiting = waiting.slice(options.itemsMax)
      inFlight++
      options.observe?.(batch.length)
      void send(batch)
    }
  }

  async function send(batch: readonly Waiting[]): Promise<void> {
    let results: readonly Result[] | null = null
    try {
      results = await options.run(batch.map(({ item }) => item))
      assert.equal(results.length, batch.length)
    } catch {
      results = null
    }
    inFlight--
    // The next batch leaves before callers get their results, so that the other side is never idle.
    flush()
    batch.forEach(({ item, resolve, reject }, i) => {
      if (results) resolve(results[i] as Result)
      // One bad item fails its whole batch. Run alone, each gets its own result or error.
      else options.runAlone(item).then(resolve, reject)
    })
  }

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      flush()
    })
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      // Items that arrive in the same turn of the event loop leave together, unless there are enough for a batch already.
      if (furtherItemsMin > 1 && waiting.length >= furtherItemsMin) flush()
      else schedule()
    })
}
