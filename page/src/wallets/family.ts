import type { Option, Terms } from '../terms.ts'

/** The network that the buyer pays on, if the store accepts several. This device remembers it. */
const key = 'farthing network'

/**
 * The option to show in place of the one that the server chose: one that a wallet in this browser can pay, on the
 * remembered network if possible. Null if the page should stay as it is.
 */
export function betterOption(
  { options, chosen }: Terms,
  wallets: readonly Pick<Option, 'family'>[],
): Option | null {
  const shown = options.find(({ place }) => place === chosen)
  const known = options.find(({ accepted }) => accepted.network === remembered())
  const canPay = (option: Option | undefined) => wallets.some(({ family }) => family === option?.family)
  const better = [known, shown, ...options].find(canPay)
  return better && better !== shown ? better : null
}

// Without storage, the choice lasts as long as the page.
let last: string | null = null

export function remember(network: string): void {
  last = network
  try {
    localStorage.setItem(key, network)
  } catch {}
}

function remembered(): string | null {
  try {
    return last ?? localStorage.getItem(key)
  } catch {
    return last
  }
}
