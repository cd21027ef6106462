/**
 * A chain in memory, as far as payments need it: blocks with a time and a parent, a pool, one settler's account nonces,
 * authorizations that are valid once and until their time, and a payer that the token may refuse for a while. Blocks
 * can be reorganised; the node then forgets their transactions, as anvil does and a real node may.
 */
export type Act =
  | { readonly kind: 'pay'; readonly auth: number }
  | { readonly kind: 'spend'; readonly auth: number }
  | { readonly kind: 'refuse' | 'allow' | 'nothing' }

export type Tx = {
  readonly hash: string
  /** The settler's nonce; null for a stranger, whose nonces are not modelled. */
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

type State = { readonly used: ReadonlySet<number>; readonly nonce: number; readonly isRefused: boolean }

export type Chain = ReturnType<typeof openChain>

export function openChain(validBefore: (auth: number) => number) {
  let hashes = 0
  const blocks: Block[] = []
  let pool: Tx[] = []

  const head = (): Block => blocks.at(-1) as Block
  /** The state after each block, by block number. */
  const states: State[] = []
  const stateAt = (number: number): State => states[number] ?? { used: new Set(), nonce: 0, isRefused: false }

  const mine = (time: number, isEmpty = false): void => {
    const number = blocks.length
    const before = stateAt(number - 1)
    const used = new Set(before.used)
    let { nonce, isRefused } = before
    const txs: Tx[] = []
    const logs: Block['logs'][number][] = []
    const candidates = isEmpty ? [] : pool
    for (const tx of candidates.toSorted((a, b) => (a.nonce ?? -1) - (b.nonce ?? -1))) {
      if (tx.nonce !== null && tx.nonce !== nonce) continue
      if (tx.nonce !== null) nonce++
      txs.push(tx)
      for (const act of tx.acts) {
        if (act.kind === 'refuse' || act.kind === 'allow') isRefused = act.kind === 'refuse'
        if (act.kind !== 'pay' && act.kind !== 'spend') continue
        if (used.has(act.auth) || time >= validBefore(act.auth) || isRefused) continue
        used.add(act.auth)
        logs.push({ kind: act.kind === 'pay' ? 'paid' : 'spent', auth: act.auth })
      }
    }
    if (!isEmpty) pool = pool.filter((tx) => !txs.includes(tx) && (tx.nonce === null || tx.nonce >= nonce))
    states[number] = { used, nonce, isRefused }
    blocks.push({ hash: ++hashes, parent: blocks.at(-1)?.hash ?? 0, number, time, txs, logs })
  }
  mine(0, true)

  return {
    blocks,
    head,
    stateAt,
    mine,
    poolSize: () => pool.length,
    /** Of two transactions with one nonce, the later one is kept, as if it paid a higher fee. */
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
