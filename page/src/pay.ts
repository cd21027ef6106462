import { settle } from './settle.ts'
import { Stop, show, troubleOf } from './show.ts'
import { terms } from './terms.ts'
import type { Wallet } from './wallets/found.ts'

let turn = 0
let letGo = () => {}

/** Abandons the current wallet request. If the wallet still answers, the answer is ignored. */
export function startOver(): void {
  turn++
  letGo()
  show(null)
}

/** Has the wallet sign a payment and submits it. Only one tab at a time asks for a signature. */
export async function pay(wallet: Wallet): Promise<void> {
  const mine = ++turn
  const checkIsMine = () => {
    if (mine !== turn) throw new Stop('failed')
  }
  try {
    await alone(async () => {
      show('connecting')
      const header = await wallet.sign(checkIsMine)
      checkIsMine()
      // Someone else has paid already. This signature is not needed, and it has not left the page.
      if (terms()?.status !== 'OPEN') throw new Stop('changed')
      await settle(header)
    })
  } catch (error) {
    if (mine === turn) show(troubleOf(error))
  }
}

async function alone(work: () => Promise<void>): Promise<void> {
  if (!navigator.locks) return await work()
  await navigator.locks.request(`farthing ${terms()?.id}`, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new Stop('tab')
    // A wallet that never answers must not hold the lock forever.
    const isLeft = new Promise<void>((resolve) => {
      letGo = resolve
    })
    await Promise.race([work(), isLeft])
  })
}
