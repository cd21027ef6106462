import { settle } from './settle.ts'
import { show } from './show.ts'
import { terms } from './terms.ts'
import { Stop, troubleOf } from './trouble.ts'
import type { Wallet } from './wallets/found.ts'

/** After this many signatures that came too late, the buyer decides whether to try again. */
const roundsMax = 3

/** The request that a wallet in this tab has not answered yet. A second click while there is one changes nothing. */
let current: { readonly letGo: () => void } | null = null
/** Resolves when the browser has freed this tab's lock, a moment after the tab let go. */
let isFree: Promise<unknown> = Promise.resolve()

/** Abandons the current wallet request. If the wallet still answers, the answer is ignored. */
export function startOver(): void {
  current?.letGo()
  current = null
  show(null)
}

/** Has the wallet sign a payment and submits it. Only one tab at a time asks for a signature. */
export async function pay(wallet: Wallet): Promise<void> {
  if (current) return
  let letGo = () => {}
  const isLeft = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const mine = { letGo }
  current = mine
  show('connecting')
  const checkIsMine = () => {
    if (current !== mine) throw new Stop('failed')
  }
  try {
    await isFree
    const work = alone(async () => {
      checkIsMine()
      for (let round = 1; ; round++) {
        const header = await wallet.sign(checkIsMine, round > 1)
        checkIsMine()
        // Someone has paid in the meantime. This signature is not needed, and it has not left the page.
        if (!terms()?.isPayable) throw new Stop('changed')
        // A signature that came too late can never move money, so the wallet may be asked again.
        if ((await settle(header)) !== 'expired' || round === roundsMax) return
        show('again')
        checkIsMine()
      }
    }, isLeft)
    isFree = work.catch(() => {})
    await work
  } catch (error) {
    if (current === mine) show(troubleOf(error))
  } finally {
    if (current === mine) current = null
  }
}

async function alone(work: () => Promise<void>, isLeft: Promise<void>): Promise<void> {
  // A wallet that never answers must not hold the lock forever.
  const workOrLeave = () => Promise.race([work(), isLeft])
  if (!navigator.locks) return await workOrLeave()
  await navigator.locks.request(`farthing ${terms()?.id}`, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new Stop('tab')
    await workOrLeave()
  })
}
