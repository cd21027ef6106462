import type { Waiting } from '@farthing/sdk/pay'
import type { Terminal } from './terminal.ts'

/** Most answers are there within a second or two. After that, the person is told why it takes longer. */
const silentMs = 3_000

/**
 * Tells people what `pay` waits for: a few seconds after it begins, and again when the reason changes. If nothing is
 * signed and no server listens at the address, it gives up at that point, because there is nothing to wait for.
 */
export function openWaiting(terminal: Terminal, host: string) {
  const giveUp = new AbortController()
  let isSigned = false
  let last: Waiting | null = null
  let said = ''
  let isLate = false
  let rest = () => {}
  let timer: NodeJS.Timeout | undefined

  const tell = () => {
    isLate = true
    if (!isSigned && last?.status === null) return giveUp.abort()
    const text = reasonOf(host, isSigned, last)
    if (text === said) return
    said = text
    terminal.notice({ code: last?.code ?? null, detail: text })
  }
  const restart = (text: string) => {
    rest()
    rest = terminal.busy(text)
    clearTimeout(timer)
    isLate = false
    last = null
    timer = setTimeout(tell, silentMs)
  }
  const stop = () => {
    rest()
    clearTimeout(timer)
  }
  return {
    signal: giveUp.signal,
    begin: () => restart('Fetching the price …'),
    /** Nothing is waited for while a person reads the offer. */
    pause: stop,
    beginPaying() {
      isSigned = true
      restart('Paying …')
    },
    /** A signature from an earlier run was found. */
    markSigned() {
      isSigned = true
    },
    hear(waiting: Waiting) {
      isSigned = waiting.isSigned
      last = waiting
      if (isLate) tell()
    },
    stop,
  }
}

function reasonOf(host: string, isSigned: boolean, last: Waiting | null): string {
  const signed = isSigned
    ? 'The payment is signed and kept. I keep submitting it; you can stop with Ctrl-C and run the same command later.'
    : 'Nothing is signed.'
  return `${causeOf(host, last)} ${signed}`
}

function causeOf(host: string, last: Waiting | null): string {
  if (last === null) return `Waiting for an answer from ${host}.`
  if (last.status === null) return `No server answers at ${host}.`
  if (last.detail !== null) return `Waiting: ${last.detail}`
  return last.status === 202
    ? 'Waiting: the payment is being settled.'
    : `Waiting: ${host} answers with HTTP ${last.status}.`
}
