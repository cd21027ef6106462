import type { Context } from '../../context.ts'
import type * as rows from '../rows.ts'
import type { Chain } from './chain.ts'
import { noteDispute, noteLies } from './disputes.ts'
import type { Listener } from './listener.ts'
import { listFound, type RangeAccount } from './ranges.ts'
import { type BlockPlace, readAgain } from './read-again.ts'
import { paceOf, readVerdicts } from './read-blocks.ts'
import { type Concerns, isConcerned } from './search.ts'
import { takeMissed } from './take.ts'
import type { BlockVerdict, Lie } from './witnesses.ts'

/**
 * A search only finds blocks. What is in them is read by their hashes, with all logs of our tokens, and decided as for any
 * block: an authorization and its transfer are neighbours, and what the search asks for would show one of them.
 */
type FoundBlock = {
  readonly number: number
  readonly verdict: BlockVerdict
  /** Whether something in it does concern us. */
  readonly isOurs: boolean
}

export type Contents = {
  /** What was found and is not stored with its logs, lowest first. */
  readonly read: readonly FoundBlock[]
  /** Those who have found every block in which something is. */
  readonly consistent: readonly RangeAccount[]
  /** Whether everything was read that they have found above the tip, and at or below it. */
  readonly isWhole: boolean
  readonly isWholeBelow: boolean
}

/** What is searched, with what is stored of it. */
export type Searched = {
  readonly tip: rows.StoredBlock
  readonly stored: ReadonlyMap<number, rows.StoredBlock>
  readonly concerns: Concerns
}

/** Of what is found at or below the tip, so much is read per look, so that it holds up nothing above. */
const belowPerLook = 5

export async function readContents(
  ctx: Context,
  chain: Chain,
  telling: readonly RangeAccount[],
  { tip, stored, concerns }: Searched,
): Promise<Contents> {
  const { witnessesMin } = chain.network
  const pace = paceOf(chain)
  const found = listFound(telling)
  const isKnown = ({ number, hash }: BlockPlace) => {
    const block = stored.get(number)
    return block?.hash === hash && block.isFound && block.witnesses >= witnessesMin
  }
  const above = found.filter(({ number }) => number > tip.number)
  const below = found.filter((place) => place.number <= tip.number && !isKnown(place))
  const some = [...below.slice(0, belowPerLook), ...above.slice(0, pace)]
  const verdicts = await readVerdicts(ctx, chain, some, true)
  const read = some.flatMap(({ number }, i): FoundBlock[] => {
    const verdict = verdicts[i]
    return verdict ? [{ number, verdict, isOurs: isOurs(verdict, concerns) }] : []
  })
  await noteLies(ctx, chain, listMadeUp(telling, read, witnessesMin))
  const confirmed = [
    ...found.filter(isKnown),
    ...read.flatMap(({ number, verdict, isOurs }) =>
      isOurs && verdict.kind === 'believed' ? [{ number, hash: verdict.block.hash }] : [],
    ),
  ]
  return {
    read,
    consistent: telling.filter(({ hits }) =>
      confirmed.every(({ number, hash }) => hits?.get(number) === hash),
    ),
    isWhole: above.length <= pace,
    isWholeBelow: below.length <= belowPerLook,
  }
}

/** A search that finds something in a block in which nothing is, as enough providers tell, is a lie. */
function listMadeUp(
  telling: readonly RangeAccount[],
  read: readonly FoundBlock[],
  witnessesMin: number,
): Lie[] {
  if (witnessesMin === 1) return []
  return read.flatMap(({ number, verdict, isOurs }) => {
    if (isOurs || verdict.kind !== 'believed' || verdict.toldBy.length < witnessesMin) return []
    return telling
      .filter(({ hits }) => hits?.get(number) === verdict.block.hash)
      .map(({ provider }) => ({ provider, what: `something found in block ${number}, in which nothing is` }))
  })
}

function isOurs(verdict: BlockVerdict, concerns: Concerns): boolean {
  return verdict.kind === 'believed' && verdict.logs.some((log) => isConcerned(log, concerns))
}

/**
 * Takes what was found at or below the tip and is not stored: an earlier search missed it. False if some of that cannot be
 * taken yet.
 */
export async function fillGaps(
  ctx: Context,
  chain: Chain,
  { follower, tip, stored }: Omit<Searched, 'concerns'> & { readonly follower: rows.Follower },
  { read, isWholeBelow }: Contents,
  listener: Listener,
): Promise<boolean> {
  let isFilled = isWholeBelow
  for (const { number, verdict, isOurs } of read) {
    if (number > tip.number) continue
    if (verdict.kind === 'disputed' || verdict.kind === 'forked')
      await noteDispute(ctx, chain, follower, verdict)
    if (verdict.kind !== 'believed') isFilled = false
    if (verdict.kind !== 'believed' || !isOurs) continue
    const block = stored.get(number)
    if (block?.isFound) continue
    const isTaken = block
      ? (await readAgain(ctx, chain, follower, [block], listener)).length === 0
      : await takeMissed(ctx, chain, verdict, tip, listener)
    if (!isTaken) isFilled = false
  }
  return isFilled
}
