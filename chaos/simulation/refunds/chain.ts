/**
 * A chain in memory, as far as refunds need it: a wallet's signature moves money once, before its time ends, and anyone
 * may submit it. Blocks can be reorganised, and the node may forget their transactions.
 */
export type Terms = {
  readonly nonce: string
  readonly to: string
  readonly value: bigint
  readonly validBefore: number
}

export type Block = {
  readonly hash: number
  readonly parent: number
  readonly number: number
  readonly time: number
  readonly transfers: readonly Terms[]
}

export type RefundChain = ReturnType<typeof openRefundChain>

export function openRefundChain() {
  let hashes = 0
  let pool: Terms[] = []
  const blocks: Block[] = [{ hash: 0, parent: -1, number: 0, time: 0, transfers: [] }]
  const head = () => blocks.at(-1) as Block
  /** The nonces that are used after each block, by its number. */
  const used: ReadonlySet<string>[] = [new Set()]
  const usedUntil = (number: number) => used[number] ?? new Set<string>()

  const mine = (time: number, isEmpty = false): void => {
    const number = blocks.length
    const before = usedUntil(number - 1)
    const transfers: Terms[] = []
    for (const terms of isEmpty ? [] : pool)
      if (
        time < terms.validBefore &&
        ![...before, ...transfers.map(({ nonce }) => nonce)].includes(terms.nonce)
      )
        transfers.push(terms)
    if (!isEmpty) pool = []
    used[number] =
      transfers.length === 0 ? before : new Set([...before, ...transfers.map(({ nonce }) => nonce)])
    blocks.push({ hash: ++hashes, parent: head().hash, number, time, transfers })
  }

  let moved = { hash: -1, transfers: [] as readonly Terms[] }
  /** All transfers on the current chain. */
  const paid = (): readonly Terms[] => {
    if (moved.hash !== head().hash)
      moved = { hash: head().hash, transfers: blocks.flatMap(({ transfers }) => transfers) }
    return moved.transfers
  }

  return {
    blocks,
    head,
    paid,
    usedUntil,
    mine,
    submit(terms: Terms): void {
      pool.push(terms)
    },
    forget(): void {
      pool = []
    },
    /**
     * Replaces the newest blocks with others of the same times: empty ones, or ones with the waiting transactions. The
     * node forgets the transactions of the removed blocks, or they wait again.
     */
    reorg(depth: number, isForgotten: boolean, isEmpty: boolean): void {
      const removed = blocks.splice(Math.max(1, blocks.length - depth))
      if (!isForgotten) pool.push(...removed.flatMap(({ transfers }) => transfers))
      for (const { time } of removed) mine(time, isEmpty)
    },
  }
}
