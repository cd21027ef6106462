import { decode } from './transaction.ts'

export type Call = { readonly method: string; readonly params: readonly unknown[] }

/** The transactions that were sent so far, by their signatures. */
export type Memory = Map<string, { readonly encoded: string; readonly at: number }>

/** Turns a provider's honest answers into false ones. */
export type Lie = {
  change(call: Call, result: unknown, sent: Memory): unknown
  /** Acknowledges transactions and throws them away. */
  readonly isDropping?: true
}

type Status = { slot: number; err: unknown; confirmationStatus: string; confirmations: number | null } | null
type Statuses = { readonly context: { readonly slot: number }; readonly value: readonly Status[] }
type Balance = { readonly accountIndex: number; readonly uiTokenAmount: { readonly amount: string } }
type Landed = {
  readonly slot: number
  readonly blockTime: number
  readonly transaction: readonly [string, string]
  readonly meta: { readonly err: unknown; readonly postTokenBalances: readonly Balance[] }
} | null
type Epoch = { readonly absoluteSlot: number; readonly blockHeight: number }
type Latest = {
  readonly context: { readonly slot: number }
  readonly value: { readonly blockhash: string; readonly lastValidBlockHeight: number }
}
type Simulated = { readonly context: { readonly slot: number }; readonly value: { readonly err: unknown } }
type Account = { readonly data: readonly [string, string] } | null

/** The answers that lies are about. */
type Answers = {
  getSignatureStatuses: Statuses
  getTransaction: Landed
  getEpochInfo: Epoch
  getLatestBlockhash: Latest
  simulateTransaction: Simulated
  getAccountInfo: { readonly value: Account }
  getMultipleAccounts: { readonly value: readonly Account[] }
  getBalance: { readonly value: number }
  getBlockTime: number | null
  getGenesisHash: string
}
type Changes = {
  [Method in keyof Answers]?: (result: Answers[Method], params: readonly unknown[], sent: Memory) => unknown
}

/** More than providers may be apart without one of them being wrong. */
const farBlocks = 1_000
/** Less than that. */
const nearBlocks = 100
const lagBlocks = 25
const failure = { InstructionError: [2, { Custom: 1 }] }

/** The ways in which a provider lies. Each call begins a new lie, which stays consistent with itself. */
export const lies: Readonly<Record<string, () => Lie>> = {
  'transactions unknown': () =>
    changing({ getSignatureStatuses: eachStatus(() => null), getTransaction: () => null }),
  'transactions landed that did not': forgeLandings,
  'transactions failed': () =>
    changing({
      getSignatureStatuses: eachStatus((status) => ({ ...status, err: failure })),
      getTransaction: eachLanded((landed) => ({ ...landed, meta: { ...landed.meta, err: failure } })),
    }),
  'failed transactions succeeded': () =>
    changing({
      getSignatureStatuses: eachStatus((status) => ({ ...status, err: null })),
      getTransaction: eachLanded((landed) => ({ ...landed, meta: { ...landed.meta, err: null } })),
    }),
  'amounts doubled': () => changeAmounts((units) => units * 2n),
  'amounts of nothing': () => changeAmounts(() => 0n),
  'bytes of another transaction': () =>
    changing({
      getTransaction: (landed, [signature], sent) => {
        const [other] = [...sent].filter(([one]) => one !== signature).map(([, { encoded }]) => encoded)
        return landed && other ? { ...landed, transaction: [other, 'base64'] } : landed
      },
    }),
  'other slots': () =>
    changing({
      getSignatureStatuses: eachStatus((status) => ({ ...status, slot: status.slot + 1 })),
      getTransaction: eachLanded((landed) => ({ ...landed, slot: landed.slot + 1 })),
    }),
  'finality too early': () =>
    changing({
      getSignatureStatuses: eachStatus((status) => ({ ...status, confirmationStatus: 'finalized' })),
    }),
  'finality never': () =>
    changing({
      getSignatureStatuses: eachStatus((status) => ({ ...status, confirmationStatus: 'confirmed' })),
    }),
  'heights far ahead': () => moveHeights(farBlocks),
  'heights somewhat ahead': () => moveHeights(nearBlocks),
  'heights far behind': () => moveHeights(-farBlocks),
  'heights somewhat behind': () => moveHeights(-nearBlocks),
  'blockhashes expired': () => simulating(() => 'BlockhashNotFound'),
  'blockhashes valid': () => simulating((err) => (err === 'BlockhashNotFound' ? null : err)),
  'blockhashes about to expire': () => moveLifetimes(-140),
  'every transaction would succeed': () => simulating(() => null),
  'every transaction would fail': () => simulating(() => failure),
  'every transaction has landed': () => simulating(() => 'AlreadyProcessed'),
  'settlers without money': () =>
    changing({
      getBalance: (result) => ({ ...result, value: 0 }),
      simulateTransaction: (result) => ({
        ...result,
        value: { ...result.value, err: 'InsufficientFundsForFee' },
      }),
    }),
  'balances too low': () => changeUnits(() => 0n),
  'balances too high': () => changeUnits((units) => units + 10n ** 12n),
  'no token accounts': () =>
    changing({
      getAccountInfo: (result) => ({ ...result, value: null }),
      getMultipleAccounts: (result) => ({ ...result, value: result.value.map(() => null) }),
    }),
  'false block times': () =>
    changing({ getBlockTime: (seconds) => (seconds === null ? null : seconds + 3_600) }),
  'another cluster': () => changing({ getGenesisHash: () => 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG' }),
  nonsense: () => ({ change: ({ method }, result) => (method === 'getGenesisHash' ? result : {}) }),
  'transactions thrown away': () => ({ change: (_, result) => result, isDropping: true }),
  'a head that never moves': stopHead,
  'a node that lags': lag,
}

function changing(changes: Changes): Lie {
  return {
    change({ method, params }, result, sent) {
      const change = changes[method as keyof Answers] as Changes['getBalance'] | undefined
      return change ? change(result as Answers['getBalance'], params, sent) : result
    },
  }
}

/** Changes the statuses of known transactions. */
function eachStatus(change: (status: NonNullable<Status>) => Status) {
  return (result: Statuses) => ({ ...result, value: result.value.map((status) => status && change(status)) })
}

function eachLanded(change: (landed: NonNullable<Landed>) => object | null) {
  return (landed: Landed) => landed && change(landed)
}

/** Every sent transaction is final, and paid, in the block that was newest when the lie was first told. */
function forgeLandings(): Lie {
  const slots = new Map<string, number>()
  return changing({
    getSignatureStatuses: (result, [signatures]) => ({
      ...result,
      value: result.value.map((status, i) => {
        const signature = (signatures as readonly string[])[i] ?? ''
        if (status) return { ...status, confirmationStatus: 'finalized' }
        if (!slots.has(signature)) slots.set(signature, result.context.slot - 1)
        return { slot: slots.get(signature), confirmations: null, err: null, confirmationStatus: 'finalized' }
      }),
    }),
    getTransaction: (landed, [signature], sent) => {
      const { encoded } = sent.get(String(signature)) ?? {}
      const slot = slots.get(String(signature))
      if (landed || !encoded || slot === undefined) return landed
      const { accounts, transfer } = decode(Buffer.from(encoded, 'base64'))
      const amount = `${transfer?.units}`
      const post = { accountIndex: accounts.indexOf(transfer?.destination ?? ''), uiTokenAmount: { amount } }
      return {
        slot,
        blockTime: Math.floor(Date.now() / 1_000),
        transaction: [encoded, 'base64'],
        meta: { err: null, preTokenBalances: [], postTokenBalances: [post] },
      }
    },
  })
}

function changeAmounts(change: (units: bigint) => bigint): Lie {
  const changed = (balance: Balance) => {
    const amount = `${change(BigInt(balance.uiTokenAmount.amount))}`
    return { ...balance, uiTokenAmount: { ...balance.uiTokenAmount, amount } }
  }
  return changing({
    getTransaction: eachLanded((landed) => ({
      ...landed,
      meta: { ...landed.meta, postTokenBalances: landed.meta.postTokenBalances.map(changed) },
    })),
  })
}

function moveHeights(blocks: number): Lie {
  const moved = (height: number) => Math.max(1, height + blocks)
  return changing({
    getEpochInfo: (epoch) => ({
      ...epoch,
      absoluteSlot: moved(epoch.absoluteSlot),
      blockHeight: moved(epoch.blockHeight),
    }),
    getLatestBlockhash: ({ context, value }) => ({
      context: { ...context, slot: moved(context.slot) },
      value: { ...value, lastValidBlockHeight: moved(value.lastValidBlockHeight) },
    }),
  })
}

function moveLifetimes(blocks: number): Lie {
  return changing({
    getLatestBlockhash: ({ context, value }) => ({
      context,
      value: { ...value, lastValidBlockHeight: Math.max(1, value.lastValidBlockHeight + blocks) },
    }),
  })
}

function simulating(change: (err: unknown) => unknown): Lie {
  return changing({
    simulateTransaction: (result) => ({
      ...result,
      value: { ...result.value, err: change(result.value.err) },
    }),
  })
}

/** A token account's units are 8 bytes after its mint and its owner. */
function changeUnits(change: (units: bigint) => bigint): Lie {
  const changed = (account: Account): Account => {
    const bytes = Buffer.from(account?.data[0] ?? '', 'base64')
    if (!account || bytes.length !== 165) return account
    bytes.writeBigUInt64LE(change(bytes.readBigUInt64LE(64)), 64)
    return { ...account, data: [bytes.toString('base64'), 'base64'] }
  }
  return changing({ getAccountInfo: (result) => ({ ...result, value: changed(result.value) }) })
}

/** The ledger ends at the block that was newest when the lie began. */
function stopHead(): Lie {
  const first = new Map<string, unknown>()
  return {
    change({ method, params }, result) {
      if (method !== 'getEpochInfo' && method !== 'getLatestBlockhash') return result
      const key = `${method} ${JSON.stringify(params)}`
      if (!first.has(key)) first.set(key, result)
      return first.get(key)
    },
  }
}

/** Does not know the newest blocks. Such a node is honest but late. */
function lag(): Lie {
  let head = 0
  let final = 0
  return changing({
    getEpochInfo: (epoch, [settings]) => {
      const absoluteSlot = Math.max(1, epoch.absoluteSlot - lagBlocks)
      if ((settings as { commitment?: string } | undefined)?.commitment === 'finalized')
        final = Math.max(final, absoluteSlot)
      head = Math.max(head, absoluteSlot)
      return { ...epoch, absoluteSlot, blockHeight: Math.max(1, epoch.blockHeight - lagBlocks) }
    },
    getSignatureStatuses: (result) => ({
      ...result,
      value: result.value.map((status) =>
        status && status.slot <= head
          ? { ...status, confirmationStatus: status.slot <= final ? 'finalized' : 'confirmed' }
          : null,
      ),
    }),
    getTransaction: eachLanded((landed) => (landed.slot <= head ? landed : null)),
    getBlockTime: (seconds, [slot]) => ((slot as number) <= head ? seconds : null),
    getLatestBlockhash: ({ context, value }) => ({
      context: { ...context, slot: Math.max(1, context.slot - lagBlocks) },
      value: { ...value, lastValidBlockHeight: Math.max(1, value.lastValidBlockHeight - lagBlocks) },
    }),
    simulateTransaction: (result) => ({
      ...result,
      context: { ...result.context, slot: Math.max(1, result.context.slot - lagBlocks) },
    }),
  })
}
