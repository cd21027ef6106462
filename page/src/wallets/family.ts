import type { Family, Option } from '../terms.ts'

/** The kind of wallet that the buyer pays with, if the store accepts several. This device remembers the choice. */
const key = 'farthing family'

export function familyOf(
  options: readonly Option[],
  wallets: readonly { readonly family: Family }[],
): Family | undefined {
  const isOffered = ({ family }: { readonly family: Family }) =>
    options.some((option) => option.family === family)
  const chosen = options.find(({ family }) => family === remembered())
  return (chosen ?? wallets.find(isOffered) ?? options[0])?.family
}

// Without storage, the choice lasts as long as the page.
let last: string | null = null

export function choose(family: string): void {
  last = family
  try {
    localStorage.setItem(key, family)
  } catch {}
}

function remembered(): string | null {
  try {
    return last ?? localStorage.getItem(key)
  } catch {
    return last
  }
}
