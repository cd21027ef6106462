import { once } from 'node:events'
import type { MovementPeriod } from '@farthing/sdk'
import { type Command, clientOf, textOf, UsageError } from '../command.ts'

export const reportCommand: Command = {
  name: 'report movements',
  arguments: '',
  summary: 'Write the store’s books as a file, to standard output',
  options: {
    month: { type: 'string', value: 'yyyy-mm', about: 'a month in the store’s time zone' },
    from: { type: 'string', value: 'time', about: 'booked at this time or later, in ISO 8601' },
    before: { type: 'string', value: 'time', about: 'booked before this time' },
    csv: { type: 'boolean', about: 'comma-separated values; the default' },
    ndjson: { type: 'boolean', about: 'one JSON object per line' },
    details: { type: 'boolean', about: 'with payer, recipient, description and note of today' },
  },
  notes: [
    'farthing report movements --month 2026-10 --csv > october.csv',
    'Exits with 0 only if the file is complete. A month that is over always gives',
    'the same file.',
  ],
  async run(call) {
    const { settings, terminal, values } = call
    if (values.csv && values.ndjson) throw new UsageError('Choose --csv or --ndjson.')
    const file = await clientOf(settings).movements.file({
      ...periodOf({
        month: textOf(call, 'month'),
        from: textOf(call, 'from'),
        before: textOf(call, 'before'),
      }),
      format: values.ndjson ? 'ndjson' : 'csv',
      details: values.details === true,
    })
    const progress = terminal.progress(file.lines)
    let written = 0
    try {
      for await (const part of file.body) {
        if (!process.stdout.write(part)) await once(process.stdout, 'drain')
        written += newlinesIn(part)
        progress.show(written)
      }
    } finally {
      progress.end()
    }
    if (!file.isClosed)
      process.stderr.write('The period is not over: these are the lines that are booked so far.\n')
    return undefined
  },
}

function periodOf({
  month,
  from,
  before,
}: Readonly<Record<'month' | 'from' | 'before', string | undefined>>): MovementPeriod {
  if (month === undefined)
    return {
      ...(from !== undefined && { bookedFrom: from }),
      ...(before !== undefined && { bookedBefore: before }),
    }
  if (from !== undefined || before !== undefined)
    throw new UsageError('Choose --month, or --from and --before.')
  return { month }
}

const newline = 10

function newlinesIn(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) if (byte === newline) count++
  return count
}
