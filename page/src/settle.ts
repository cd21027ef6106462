import { refresh, show } from './show.ts'
import { path, terms } from './terms.ts'
import type { Trouble } from './trouble.ts'

/**
 * Submits a signed payment until its outcome is known. The payment is stored for as long as this tab lives: after a
 * reload, a lost connection or a server error the same payment is submitted again, and nothing is signed again. The
 * server remembers every payment: 200 means paid, 402 means that it can never move money, and after anything else the
 * outcome is not known yet.
 */
const key = `farthing ${path}`
const patienceMs = 3_000

export function hasSigned(): boolean {
  return kept() !== null
}

/** Returns the trouble that it shows at the end, if the checkout can still be paid. */
export async function settle(header: string | null = kept()): Promise<Trouble | null> {
  if (header === null) return null
  keep(header)
  show('settling')
  for (;;) {
    const answer = await hand(header)
    if (answer === null) {
      show('offline')
      await wait(patienceMs)
    } else if (answer.status === 202 || (await isUnderWay(answer))) {
      show('settling')
      await wait(retryMs(answer))
    } else if (answer.status === 429 || answer.status >= 500) {
      show('unavailable')
      await wait(retryMs(answer))
    } else {
      const trouble =
        answer.status === 402 ? troubleOf(await reasonOf(answer)) : answer.status === 400 ? 'failed' : null
      while (!(await refresh())) await wait(patienceMs)
      keep(null)
      const shown = terms()?.status === 'OPEN' ? trouble : null
      show(shown)
      return shown
    }
  }
}

async function hand(header: string): Promise<Response | null> {
  try {
    return await fetch(path, { method: 'POST', headers: { 'PAYMENT-SIGNATURE': header } })
  } catch {
    return null
  }
}

/** Another payment is being settled. If it fails, this one may still be needed. */
async function isUnderWay(answer: Response): Promise<boolean> {
  return answer.status === 409 && (await read(answer)).code === 'payment_in_progress'
}

async function reasonOf(answer: Response): Promise<string> {
  return String((await read(answer)).error)
}

async function read(answer: Response): Promise<{ code?: unknown; error?: unknown }> {
  return await answer
    .clone()
    .json()
    .catch(() => ({}))
}

function troubleOf(reason: string): Trouble {
  if (/insufficient_(balance|funds)$/.test(reason)) return 'funds'
  // The key's owner signed, but the contract at the address rejects the signature: it is a smart account.
  if (reason.endsWith('evm_signature')) return 'smart'
  if (reason === 'blockhash_expired') return 'expired'
  if (reason.endsWith('undeployed_smart_wallet')) return 'undeployed'
  return 'failed'
}

function retryMs(answer: Response): number {
  return 1_000 * Number.parseInt(answer.headers.get('retry-after') ?? '3', 10) || patienceMs
}

/** Resolves early when the connection is back. */
function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
    addEventListener('online', () => resolve(), { once: true })
  })
}

// A tab without storage can still pay; it only forgets the payment when it is closed or reloaded.
function kept(): string | null {
  try {
    return sessionStorage.getItem(key)
  } catch {
    return null
  }
}

function keep(header: string | null): void {
  try {
    if (header === null) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, header)
  } catch {}
}
