import { createHash } from 'node:crypto'
import type { LogEntry } from '@farthing/sdk'
import { signWebhook } from '@farthing/sdk/webhooks'
import { type Command, clientOf, countOf, textOf, UsageError } from '../command.ts'
import { paint } from '../terminal.ts'
import { lineOf } from './events.ts'

/** The same time-out as Farthing's own deliveries. */
const patienceMs = 15_000

export const listenCommand: Command = {
  name: 'listen',
  arguments: '<port|url>',
  summary: 'Forward events to a local port, signed like webhooks',
  options: {
    type: {
      type: 'string',
      multiple: true,
      value: 'type',
      about: 'only this type; may be repeated',
    },
    replay: { type: 'string', value: 'n', about: 'send the last n events first' },
    after: { type: 'string', value: 'cursor', about: 'send everything after this cursor first' },
    secret: {
      type: 'string',
      value: 'whsec',
      about: 'signing secret; default: derived from the API key',
    },
  },
  notes: [
    '  farthing listen 3000',
    '  farthing listen http://127.0.0.1:3000/hooks/farthing --replay 5',
    '',
    'Failed deliveries are shown but not retried. Send them again with --replay.',
  ],
  async run(call) {
    const { terminal, settings, values } = call
    const target = targetOf(call.positionals[0] ?? '')
    const { events } = clientOf(settings)
    const secret = textOf(call, 'secret') ?? secretOf(settings.apiKey ?? '')
    const types = new Set(values.type as string[] | undefined)
    const after =
      textOf(call, 'after') ?? (await events.end({ before: countOf(call, 'replay', 0, 1_000_000) ?? 0 }))
    const stop = new AbortController()
    process.once('SIGINT', () => stop.abort())
    terminal.show({ listening: target, secret, after }, () => [
      `Forwarding events to ${paint('bold', target)}   Press Ctrl-C to stop.`,
      '',
      ...terminal.facts([['secret', secret]]),
      '',
    ])
    let last = after
    for await (const entry of events.stream({ after, signal: stop.signal })) {
      if (types.size > 0 && !types.has(entry.event.type)) continue
      const outcome = await forward(target, secret, entry)
      terminal.show({ ...entry, ...outcome }, () => [lineOf(entry, tell(outcome))])
      last = entry.cursor
    }
    terminal.say(paint('dim', `\nTo continue from here: --after ${last}`))
    return undefined
  },
}

type Outcome = { readonly status: number | null; readonly ms: number; readonly error: string | null }

async function forward(target: string, secret: string, { event }: LogEntry): Promise<Outcome> {
  const body = JSON.stringify(event)
  const timestamp = new Date()
  const headers = await signWebhook({ id: event.id, timestamp, body, secrets: secret })
  const since = () => Date.now() - timestamp.getTime()
  try {
    const answer = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      // Farthing's own deliveries treat a redirect as a failure too.
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
    })
    await answer.body?.cancel()
    return { status: answer.status, ms: since(), error: null }
  } catch (error) {
    const cause = (error as Error).cause as { code?: string } | undefined
    return { status: null, ms: since(), error: cause?.code ?? (error as Error).name }
  }
}

const reasons: Readonly<Record<string, string>> = { ECONNREFUSED: 'refused', TimeoutError: 'timeout' }

function tell({ status, ms, error }: Outcome): string {
  const isTaken = status !== null && status >= 200 && status < 300
  const text = status === null ? (reasons[error ?? ''] ?? 'failed') : String(status)
  return `${paint(isTaken ? 'green' : 'red', text.padEnd(7))} ${paint('dim', `${ms} ms`.padStart(8))}`
}

function targetOf(text: string): string {
  const url = /^\d{1,5}$/.test(text) ? `http://127.0.0.1:${text}/` : text
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`${text} is neither a port nor an http(s) URL.`)
  return url
}

/** The same on every start, so that the receiver keeps its configuration. A hash, so it reveals nothing about the key. */
function secretOf(apiKey: string): string {
  return `whsec_${createHash('sha256').update(`farthing listen ${apiKey}`).digest('base64')}`
}
