/** What is due for several stores. They take turns, so that a store with much of it does not hold up the others. */
type Turns<Store, Item, Value> = {
  /** What is due already keeps its place, with the new value. */
  put(store: Store, item: Item, value: Value): void
  remove(store: Store, item: Item): void
  /** Takes the next ones, one of each store at a time and of each the oldest first. */
  take(count: number): [Item, Value][]
  isEmpty(): boolean
}

export function openTurns<Store, Item, Value>(): Turns<Store, Item, Value> {
  /** Both in the order in which they are taken. A store without anything due is not in it. */
  const due = new Map<Store, Map<Item, Value>>()

  function remove(store: Store, item: Item): void {
    const items = due.get(store)
    items?.delete(item)
    if (items?.size === 0) due.delete(store)
  }

  function takeNext(): [Item, Value] | null {
    for (const [store, items] of due)
      for (const next of items) {
        // To the end of the queue, if there is more of it.
        due.delete(store)
        due.set(store, items)
        remove(store, next[0])
        return next
      }
    return null
  }

  return {
    put(store, item, value) {
      const items = due.get(store) ?? new Map<Item, Value>()
      due.set(store, items.set(item, value))
    },
    remove,
    take(count) {
      const taken: [Item, Value][] = []
      for (let next = takeNext(); next !== null; next = takeNext()) {
        taken.push(next)
        if (taken.length >= count) break
      }
      return taken
    },
    isEmpty: () => due.size === 0,
  }
}
