import type { EventKind, EventType, LogEntry } from '@farthing/sdk'
import { type Command, clientOf, countOf, textOf } from '../command.ts'
import { paint, timeOf } from '../terminal.ts'

export const eventsCommand: Command = {
  name: 'events',
  arguments: '',
  summary: 'Show the end of the store’s event log',
  options: {
    follow: { type: 'boolean', short: 'f', about: 'keep printing new events until Ctrl-C' },
    last: { type: 'string', value: 'n', about: 'start with the last n events; default 20' },
    after: { type: 'string', value: 'cursor', about: 'start after this cursor instead' },
    type: {
      type: 'string',
      value: 'type',
      about: 'only this type, or all of a kind: wallet.*',
    },
    actor: { type: 'string', value: 'id', about: 'only what this key, member or operator caused' },
    checkout: { type: 'string', value: 'id', about: 'only events of this checkout' },
  },
  async run(call) {
    const { terminal, settings, values } = call
    const { events } = clientOf(settings)
    const after =
      textOf(call, 'after') ?? (await events.end({ before: countOf(call, 'last', 0, 1_000_000) ?? 20 }))
    const type = textOf(call, 'type') as EventType | EventKind | undefined
    const checkoutId = textOf(call, 'checkout')
    const actor = textOf(call, 'actor')
    const filter = {
      ...(type && { type }),
      ...(checkoutId !== undefined && { checkoutId }),
      ...(actor !== undefined && { actor }),
    }
    const show = (entry: LogEntry) => terminal.show(entry, () => [lineOf(entry)])
    if (!values.follow) {
      await events.sync({ ...filter, cursor: after, onEvent: (event, cursor) => show({ event, cursor }) })
      return undefined
    }
    const stop = new AbortController()
    process.once('SIGINT', () => stop.abort())
    for await (const entry of events.stream({ ...filter, after, signal: stop.signal })) show(entry)
    // The terminal has echoed ^C; start a new line.
    terminal.say('')
    return undefined
  },
}

/** One event as a line: its time, an optional note such as the delivery's outcome, its type and its checkout. */
export function lineOf({ event }: LogEntry, note = ''): string {
  const { createdAt, type, checkoutId, actor } = event
  const parts = [
    paint('dim', timeOf(createdAt).slice(11)),
    note,
    paint(styleOf(type), type.padEnd(19)),
    checkoutId,
    // Checkouts are created by the store's own key, nearly always the same.
    actor && type !== 'checkout.created' && paint('dim', `by ${actor.name ?? `${actor.type} ${actor.id}`}`),
  ]
  return parts
    .filter((part) => part)
    .join('  ')
    .trimEnd()
}

function styleOf(type: EventType): Parameters<typeof paint>[0] {
  if (/completed|finalized/.test(type)) return 'green'
  if (/late|underpaid|overpaid|unmatched|reorged|reversed|disabled|undelivered/.test(type)) return 'yellow'
  return /^checkout/.test(type) ? 'cyan' : 'reset'
}
