import { agree, enoughOf } from './agree.ts'
import { type ProviderAnswer, type Rpc, type RpcCall, type RpcOutcome, RpcUnavailableError } from './rpc.ts'

/**
 * What a chain says about the past of some wallets, for the audit. Nothing here depends on what the followers have read:
 * every answer is what enough providers report alike now.
 */
export type History = {
  /** Names of the providers. */
  readonly providers: readonly string[]
  /** The blocks from one time up to another; null while the last of them is not final, or if there are none. */
  findSpan(from: Date, before: Date): Promise<Span | null>
  /** All transfers of the network's tokens to and from the wallets in these blocks, in the order of the chain. */
  readTransfers(wallets: readonly string[], span: Span): Promise<PastTransfer[]>
  /** What a wallet held of a token after the span, or before it; null if too few nodes can tell. */
  readBalance(wallet: string, asset: string, span: Span, when: 'before' | 'after'): Promise<bigint | null>
  /** The transfers of the network's tokens to the wallets that a transaction made; none if it is not on the chain. */
  readTransaction(transaction: string, wallets: readonly string[]): Promise<PastTransfer[]>
  /** The calls to nodes so far, each node’s counted. */
  countCalls(): number
}

export type Span = {
  readonly from: Date
  readonly before: Date
  /** The first and the last block. */
  readonly first: number
  readonly last: number
}

export type PastTransfer = {
  readonly asset: string
  readonly from: string
  /** Empty if the chain does not say it. */
  readonly to: string
  readonly amount: bigint
  readonly transaction: string
  readonly block: number
}

/** More transfers in one answer than the audit takes in. The caller asks about fewer wallets. */
export class TooManyTransfersError extends Error {
  override readonly name = 'TooManyTransfersError'
}

/** A business takes fewer in a day; an exchange’s address, which anybody can register, takes more. */
export const transfersPerDayMax = 50_000

/** For all nodes together. A day of blocks that come five times a second takes less than 500 of each node. */
export const callsPerDayMax = 20_000

/** What enough providers report alike. Throws if they contradict each other, or if too few answer. */
export async function askAgreed<Fact>(
  { rpc, name, witnessesMin }: { readonly rpc: Rpc; readonly name: string; readonly witnessesMin: number },
  calls: readonly RpcCall[],
  read: (outcomes: readonly RpcOutcome[]) => { readonly fact: Fact; readonly key: string } | null,
): Promise<Fact> {
  const parsed = new Map<ProviderAnswer['outcomes'], ReturnType<typeof read>>()
  const judge = (told: readonly ProviderAnswer[]) => {
    const said = told.flatMap(({ provider, outcomes }) => {
      if (!parsed.has(outcomes)) parsed.set(outcomes, read(outcomes))
      const fact = parsed.get(outcomes)
      return fact ? [{ provider, fact }] : []
    })
    return agree(said, ({ key }) => key, witnessesMin)
  }
  const enough = enoughOf(rpc.providers, witnessesMin)
  // An empty answer does not show by itself which chain it is from.
  const told = await rpc.askAll(calls, (some) => some.length >= enough && judge(some).fact !== null, true)
  const { fact, isDisputed } = judge(told)
  if (fact) return fact.fact
  const method = calls[0]?.method
  throw new RpcUnavailableError(
    isDisputed
      ? `The nodes of ${name} contradict each other about ${method}.`
      : `Too few nodes of ${name} answer ${method}.`,
  )
}
