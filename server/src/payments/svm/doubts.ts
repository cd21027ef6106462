import type { Context } from '../../context.ts'

/**
 * Which providers are not believed now, and whether that stops everything: if two contradict each other, neither is
 * believed.
 */
export type Doubt = { readonly odd: readonly string[]; readonly isDisputed: boolean }

export const noDoubt: Doubt = { odd: [], isDisputed: false }

export function joinDoubts(doubts: readonly Doubt[]): Doubt {
  return {
    odd: [...new Set(doubts.flatMap(({ odd }) => odd))].sort(),
    isDisputed: doubts.some(({ isDisputed }) => isDisputed),
  }
}

/**
 * Reports doubts to the operator: every time in the metric, and once per change in the log. `meanwhile` says what a
 * dispute stops.
 */
export function openDoubts(ctx: Context, network: string, meanwhile: string): (doubt: Doubt) => void {
  let before = ''
  return ({ odd, isDisputed }) => {
    for (const provider of odd) ctx.metrics.contradictions.inc({ network, provider })
    const now = odd.length === 0 ? '' : `${odd} ${isDisputed}`
    if (now === before) return
    before = now
    if (isDisputed)
      ctx.log.warn(
        { network, providers: odd },
        `the providers contradict each other and none is believed: ${meanwhile}; find out which one is wrong and replace it`,
      )
    else if (odd.length > 0)
      ctx.log.warn(
        { network, providers: odd },
        'a provider contradicts the others and is not believed; if this repeats, replace it',
      )
    else ctx.log.info({ network }, 'the providers agree again')
  }
}
