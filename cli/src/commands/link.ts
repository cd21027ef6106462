import { readFile } from 'node:fs/promises'
import type { CreateInvoice, Link, LinkQuery, LinkStatus } from '@farthing/sdk'
import {
  type Call,
  type Command,
  clientOf,
  countOf,
  limitsOf,
  metadataOf,
  take,
  textOf,
  UsageError,
} from '../command.ts'
import { good, type Terminal, timeOf } from '../terminal.ts'

const daysDefault = 7
const daysMax = 400
const dayMs = 86_400_000

const amountOptions = {
  min: { type: 'string', value: 'amount', about: 'the least, if the buyer chooses the amount' },
  max: { type: 'string', value: 'amount', about: 'the most, if the buyer chooses the amount' },
} as const
const untilOptions = {
  days: { type: 'string', value: 'n', about: `how many days it can be paid, 1 to ${daysMax}` },
  until: { type: 'string', value: 'time', about: 'until when it can be paid, in ISO 8601' },
} as const
const fields = {
  priceAmount: '<amount>',
  minAmount: '--min',
  maxAmount: '--max',
  until: '--until',
  invoice: '--invoice',
  kind: '--many',
  description: '--description',
  metadata: '--metadata',
  'Idempotency-Key': '--key',
} as const

export const linkCommands: readonly Command[] = [
  {
    name: 'link create',
    arguments: '<title> [amount] [currency]',
    summary: 'Create a link that buyers pay at, in USD by default',
    options: {
      many: { type: 'boolean', about: 'for many buyers; without it one payment ends the link' },
      ...untilOptions,
      ...amountOptions,
      description: { type: 'string', value: 'text', about: 'more about it; the buyer sees it' },
      invoice: {
        type: 'string',
        value: 'file',
        about: 'JSON: number, lines, taxIncluded; sets the amount',
      },
      currency: { type: 'string', value: 'code', about: 'the currency, instead of as the third word' },
      metadata: {
        type: 'string',
        multiple: true,
        value: 'name=value',
        about: 'a value of your own, unseen by buyers; repeatable',
      },
      key: { type: 'string', value: 'text', about: 'idempotency key: reusing it returns the same link' },
    },
    fields,
    notes: [
      `It can be paid for ${daysDefault} days, unless you say otherwise.`,
      '',
      "  farthing link create 'Two tickets' 25.00 EUR --days 30",
      '  farthing link create Donation --many --min 1 --max 500 --days 400',
      "  farthing link create 'Invoice 17' --invoice 17.json --currency EUR",
    ],
    run: create,
  },
  {
    name: 'link get',
    arguments: '<linkId>',
    summary: 'Show a link',
    options: {},
    async run(call) {
      show(call.terminal, await clientOf(call.settings).links.get(call.positionals[0] ?? ''))
      return undefined
    },
  },
  {
    name: 'link list',
    arguments: '',
    summary: 'List links, newest first',
    options: {
      status: { type: 'string', value: 'status', about: 'ACTIVE, PAID, CLOSED or ENDED' },
      invoice: { type: 'string', value: 'number', about: 'only the invoice with this number' },
      limit: { type: 'string', value: 'n', about: 'how many; default 20' },
    },
    fields: { status: '--status', invoiceNumber: '--invoice' },
    run: list,
  },
  {
    name: 'link update',
    arguments: '<linkId>',
    summary: 'Change a link',
    options: {
      title: { type: 'string', value: 'text', about: 'what is paid for' },
      description: { type: 'string', value: 'text', about: 'more about it' },
      amount: { type: 'string', value: 'amount', about: 'the price' },
      ...amountOptions,
      ...untilOptions,
      metadata: {
        type: 'string',
        multiple: true,
        value: 'name=value',
        about: 'replaces the existing values',
      },
    },
    fields: { ...fields, priceAmount: '--amount', title: '--title' },
    notes: ['For an invoice, only --days, --until and --metadata can change.'],
    run: update,
  },
  {
    name: 'link close',
    arguments: '<linkId>',
    summary: 'Close a link for good',
    options: {},
    async run(call) {
      const link = await clientOf(call.settings).links.close(call.positionals[0] ?? '')
      show(call.terminal, link, good('Link closed'))
      return undefined
    },
  },
]

async function create(call: Call): Promise<undefined> {
  const [title = '', priceAmount, word] = call.positionals
  const invoice = await readInvoice(textOf(call, 'invoice'))
  const idempotencyKey = textOf(call, 'key')
  const link = await clientOf(call.settings).links.create(
    {
      title,
      priceCurrency: word ?? textOf(call, 'currency') ?? 'USD',
      until: untilOf(call) ?? inDays(daysDefault),
      ...(call.values.many === true && { kind: 'many' as const }),
      ...(priceAmount !== undefined && { priceAmount }),
      ...givenOf(call, { minAmount: 'min', maxAmount: 'max', description: 'description' }),
      ...metadataFields(call),
      ...(invoice && { invoice }),
    },
    idempotencyKey === undefined ? {} : { idempotencyKey },
  )
  show(call.terminal, link, good('Link created'))
  return undefined
}

async function update(call: Call): Promise<undefined> {
  const until = untilOf(call)
  const names = { title: 'title', description: 'description', priceAmount: 'amount' }
  const link = await clientOf(call.settings).links.update(call.positionals[0] ?? '', {
    ...givenOf(call, { ...names, minAmount: 'min', maxAmount: 'max' }),
    ...(until !== undefined && { until }),
    ...metadataFields(call),
  })
  show(call.terminal, link, good('Link changed'))
  return undefined
}

async function list(call: Call): Promise<undefined> {
  const status = textOf(call, 'status')?.toUpperCase() as LinkStatus | undefined
  const { most, limit } = limitsOf(call)
  const query: LinkQuery = {
    limit,
    ...givenOf(call, { invoiceNumber: 'invoice' }),
    ...(status && { status }),
  }
  const links = await take(clientOf(call.settings).links.list(query), most)
  call.terminal.showAll(links, 'No links.', [
    { title: 'LINK', cell: ({ id }) => id },
    { title: 'STATUS', cell: (each) => each.status, style: (each) => statusStyles[each.status] },
    { title: 'PRICE', cell: priceOf },
    { title: 'FOR', cell: ({ title }) => title },
  ])
}

const statusStyles = {
  ACTIVE: 'cyan',
  PAID: 'green',
  CLOSED: 'dim',
  ENDED: 'dim',
} as const satisfies Record<LinkStatus, string>

/** The options that were given, by the fields of the API. */
function givenOf<Field extends string>(
  call: Call,
  names: Readonly<Record<Field, string>>,
): Partial<Record<Field, string>> {
  return Object.fromEntries(
    Object.entries<string>(names).flatMap(([field, option]) => {
      const text = textOf(call, option)
      return text === undefined ? [] : [[field, text]]
    }),
  ) as Partial<Record<Field, string>>
}

function metadataFields(call: Call): { metadata?: Record<string, string> } {
  const metadata = metadataOf(call)
  return metadata ? { metadata } : {}
}

function untilOf(call: Call): string | undefined {
  const days = countOf(call, 'days', 1, daysMax)
  const until = textOf(call, 'until')
  if (days !== undefined && until !== undefined) throw new UsageError('Pass --days or --until, not both.')
  return days === undefined ? until : inDays(days)
}

/** A minute early: the server's clock may be behind. */
function inDays(days: number): string {
  return new Date(Date.now() + days * dayMs - 60_000).toISOString()
}

async function readInvoice(file: string | undefined): Promise<CreateInvoice | null> {
  if (file === undefined) return null
  const text = await readFile(file, 'utf8').catch((error) => {
    throw new UsageError(`${file} cannot be read: ${error.message}`)
  })
  try {
    return JSON.parse(text) as CreateInvoice
  } catch {
    throw new UsageError(`${file} is not JSON.`)
  }
}

function priceOf({ priceAmount, minAmount, maxAmount, priceCurrency }: Link): string {
  return `${priceAmount ?? `${minAmount} to ${maxAmount}`} ${priceCurrency}`
}

function show(terminal: Terminal, link: Link, headline?: string): void {
  terminal.show(link, () => [
    ...(headline === undefined ? [] : [headline, '']),
    ...terminal.facts([
      ['link', link.id],
      ['status', link.status, statusStyles[link.status]],
      ['price', priceOf(link)],
      ['for', link.title],
      ...(link.invoice ? ([['invoice', link.invoice.number]] as const) : []),
      ['until', timeOf(link.until)],
      ['pay at', link.url, 'underline'],
    ]),
  ])
}
