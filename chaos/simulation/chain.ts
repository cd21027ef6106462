/**
 * A chain in memory, as far as payments care: blocks with a time and a parent, a pool, account nonces of one settler,
 * authorizations that are good once and until their time, and a payer whom the token may refuse for a while. Blocks can
 * be taken back; their transactions are then gone from the node, as anvil does it and as a node may.
 */
export type Act =
  | { readonly kind: 'pay'; readonly auth: number }
  | { readonly kind: 'spend'; readonly auth: number }
  | { readonly kind: 'refuse' | 'allow' | 'nothing' }

export type Tx = {
  readonly hash: string
  /** Of the settler; null for a stranger, whose nonces nobody counts. */
  readonly nonce: number | null
  readonly acts: readonly Act[]
}

export type Block = {
  readonly hash: number
  readonly parent: number
  readonly number: number
  readonly time: number
  readonly txs: readonly Tx[]
  readonly logs: readonly { readonly kind: 'paid' | 'spent'; readonly auth: number }[]
}

export type Chain = ReturnType<typeof openChain>

export function openChain(validBefore: (auth: number) => number) {
  let hashes = 0
  const blocks: Block[] = []
  let pool: Tx[] = []

  const head = (): Block => blocks.at(-1) as Block
  const stateAt = (number: number) => {
    const used = new Set<number>()
    let nonce = 0
    let isRefused = false
    for (const block of blocks.slice(0, number + 1))
      for (const tx of block.txs) {
        if (tx.nonce !== null) nonce = tx.nonce + 1
        for (const act of tx.acts)
          if (act.kind === 'refuse' || act.kind === 'allow') isRefused = act.kind === 'refuse'
      }
    for (const block of blocks.slice(0, number + 1)) for (const { auth } of block.logs) used.add(auth)
    return { used, nonce, isRefused }
  }

  const mine = (time: number, isEmpty = false): void => {
    const number = blocks.length
    const state = stateAt(number - 1)
    const txs: Tx[] = []
    const logs: Block['logs'][number][] = []
    const candidates = isEmpty ? [] : pool
    for (const tx of candidates.toSorted((a, b) => (a.nonce ?? -1) - (b.nonce ?? -1))) {
      if (tx.nonce !== null && tx.nonce !== state.nonce) continue
      if (tx.nonce !== null) state.nonce++
      txs.push(tx)
      for (const act of tx.acts) {
        if (act.kind === 'refuse' || act.kind === 'allow') state.isRefused = act.kind === 'refuse'
        if (act.kind !== 'pay' && act.kind !== 'spend') continue
        if (state.used.has(act.auth) || time >= validBefore(act.auth) || state.isRefused) continue
        state.used.add(act.auth)
        logs.push({ kind: act.kind === 'pay' ? 'paid' : 'spent', auth: act.auth })
      }
    }
    if (!isEmpty)
      pool = pool.filter((tx) => !txs.includes(tx) && (tx.nonce === null || tx.nonce >= state.nonce))
    blocks.push({ hash: ++hashes, parent: blocks.at(-1)?.hash ?? 0, number, time, txs, logs })
  }
  mine(0, true)

  return {
    blocks,
    head,
    stateAt,
    mine,
    poolSize: () => pool.length,
    /** Of two transactions at one nonce the later one is kept, as if it paid more. */
    submit(tx: Tx): void {
      if (tx.nonce !== null && tx.nonce < stateAt(head().number).nonce) return
      pool = [
        ...pool.filter(({ nonce, hash }) => hash !== tx.hash && (nonce === null || nonce !== tx.nonce)),
        tx,
      ]
    },
    drop(index: number): void {
      pool = pool.filter((_, i) => i !== index)
    },
    reorg(depth: number): void {
      const count = Math.min(depth, blocks.length - 1)
      const times = blocks.splice(blocks.length - count, count).map(({ time }) => time)
      for (const time of times) mine(time, true)
    },
  }
}
