import type { Context } from '../../context.ts'
import type { Hex } from '../hex.ts'
import type * as rows from '../rows.ts'
import type { Chain } from './chain.ts'
import { noteDispute } from './disputes.ts'
import type { Listener } from './listener.ts'
import { listDiffering, listFound, type RangeAccount } from './ranges.ts'
import { readAgain } from './read-again.ts'
import { paceOf, readVerdicts } from './read-blocks.ts'
import { type Concerns, isConcerned } from './search.ts'
import { takeMissed } from './take.ts'
import type { BlockVerdict } from './witnesses.ts'

/**
 * A search only finds blocks. What is in them is read by their hashes, with all logs of our tokens, and decided as for any
 * block: an authorization and its transfer are neighbours, and what the search asks for would show one of them.
 */
export type FoundBlock = { readonly number: number; readonly verdict: BlockVerdict }

export type Contents = {
  /** What was found and is not stored with its logs, lowest first; and what not all providers have found. */
  readonly read: readonly FoundBlock[]
  /** Those who have found every block in which something is. */
  readonly consistent: readonly RangeAccount[]
  /** Whether everything was read that they have found. */
  readonly isWhole: boolean
}

export async function readContents(
  ctx: Context,
  chain: Chain,
  telling: readonly RangeAccount[],
  stored: ReadonlyMap<number, rows.StoredBlock>,
  concerns: Concerns,
): Promise<Contents> {
  const differing = new Set(listDiffering(telling))
  const isKnown = ({ number, hash }: { readonly number: number; readonly hash: Hex }) => {
    const block = stored.get(number)
    return block?.isFound === true && block.hash === hash && !differing.has(number)
  }
  const wanted = listFound(telling).filter((place) => !isKnown(place))
  const some = wanted.slice(0, paceOf(chain))
  const verdicts = await readVerdicts(ctx, chain, some, true)
  const read = some.flatMap(({ number }, i): FoundBlock[] => {
    const verdict = verdicts[i]
    return verdict ? [{ number, verdict }] : []
  })
  const confirmed = read.flatMap(({ number, verdict }) =>
    isOurs(verdict, concerns) ? [{ number, hash: verdict.block.hash }] : [],
  )
  return {
    read,
    consistent: telling.filter(({ hits }) =>
      confirmed.every(({ number, hash }) => hits?.get(number) === hash),
    ),
    isWhole: some.length === wanted.length,
  }
}

function isOurs(
  verdict: BlockVerdict,
  concerns: Concerns,
): verdict is Extract<BlockVerdict, { kind: 'believed' }> {
  return verdict.kind === 'believed' && verdict.logs.some((log) => isConcerned(log, concerns))
}

/**
 * Takes what was found at or below the tip and is not stored: an earlier search missed it. False if some of that cannot be
 * taken yet.
 */
export async function fillGaps(
  ctx: Context,
  chain: Chain,
  { follower, tip }: { readonly follower: rows.Follower; readonly tip: rows.StoredBlock },
  {
    read,
    stored,
    concerns,
  }: {
    readonly read: readonly FoundBlock[]
    readonly stored: ReadonlyMap<number, rows.StoredBlock>
    readonly concerns: Concerns
  },
  listener: Listener,
): Promise<boolean> {
  let isFilled = true
  for (const { number, verdict } of read) {
    if (number > tip.number) continue
    if (verdict.kind === 'disputed' || verdict.kind === 'forked')
      await noteDispute(ctx, chain, follower, verdict)
    if (verdict.kind !== 'believed') isFilled = false
    if (!isOurs(verdict, concerns)) continue
    const block = stored.get(number)
    if (block?.isFound) continue
    const isTaken = block
      ? (await readAgain(ctx, chain, follower, [block], listener)).length === 0
      : await takeMissed(ctx, chain, verdict, tip, listener)
    if (!isTaken) isFilled = false
  }
  return isFilled
}
