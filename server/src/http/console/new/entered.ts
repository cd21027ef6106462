import type { CreateLink, InvoiceLine } from '@farthing/sdk'
import { invalid, type Mistake, type Problem } from '../../../problems.ts'
import { addDays } from '../../../zone.ts'
import { currencyDecimals, isAmbiguous, withPoint } from '../fields.ts'
import { startOfDay } from '../payments/query.ts'
import { hasText, type Texts } from '../texts/choose.ts'

/** Why a link could not be made, by its field or problem. */
export type EntryFault = keyof Texts['newPayment']['faults']

/** How many days a link can be paid, as the form offers them; `date` is a day that the member names. */
export const untilChoices = ['1', '7', '30', 'date'] as const
type UntilChoice = (typeof untilChoices)[number]

/** The form's values. Each form has its own key, so that submitting it twice makes one link. */
export type Entered = {
  readonly key: string
  readonly title: string
  readonly amount: string
  readonly currency: string
  readonly until: UntilChoice
  /** Such as 2026-12-31. */
  readonly date: string
  readonly kind: 'once' | 'many'
  readonly number: string
  readonly due: string
  readonly buyerName: string
  readonly buyerAddress: string
  /** What the amount's tax rate is, where there are no lines. */
  readonly taxRate: string
  readonly isTaxIncluded: boolean
  readonly lines: readonly InvoiceLine[]
}

/** Enough for most invoices by hand. Programs make longer ones. */
export const linesOffered = 5

export const emptyEntry: Omit<Entered, 'key'> = {
  ...{ title: '', amount: '', currency: 'USD', until: '7', date: '', kind: 'once' },
  ...{ number: '', due: '', buyerName: '', buyerAddress: '', taxRate: '', isTaxIncluded: true, lines: [] },
}

export function readEntered(field: (name: string) => string): Entered {
  const text = (name: string) => field(name).trim()
  const lines = Array.from({ length: linesOffered }, (_, i) => ({
    text: text(`text${i}`),
    quantity: text(`quantity${i}`),
    unitAmount: text(`unitAmount${i}`),
    taxRate: text(`taxRate${i}`),
  }))
  return {
    key: field('key'),
    ...{ title: text('title'), amount: text('amount'), currency: field('currency') },
    until: untilChoices.find((each) => each === field('until')) ?? emptyEntry.until,
    date: text('date'),
    kind: field('kind') === 'many' ? 'many' : 'once',
    ...{ number: text('number'), due: text('due'), buyerName: text('buyerName') },
    buyerAddress: text('buyerAddress').replaceAll('\r\n', '\n'),
    taxRate: text('taxRate'),
    isTaxIncluded: field('taxIncluded') === 'yes',
    lines: lines.filter((line) => Object.values(line).some((value) => value !== '')),
  }
}

/** Whether anything of an invoice was entered, so that its part of the form is unfolded. */
export function hasInvoice({ number, due, buyerName, buyerAddress, taxRate, lines }: Entered): boolean {
  return [number, due, buyerName, buyerAddress, taxRate].some((text) => text !== '') || lines.length > 0
}

const dayMs = 86_400_000

/** Throws a Problem for mistakes that only this form allows. */
export function toCreateLink(entered: Entered, timeZone: string, now: Date): CreateLink {
  const { title, amount, currency, kind, lines } = entered
  const amounts = [amount, ...lines.map(({ unitAmount }) => unitAmount)]
  if (amounts.some((each) => isAmbiguous(each, currencyDecimals(currency))))
    throw mistake('/priceAmount', 'ambiguous', 'Thousands or decimals?')
  const base = { title, priceCurrency: currency, until: untilOf(entered, timeZone, now).toISOString() }
  if (!hasInvoice(entered)) return { ...base, kind, priceAmount: withPoint(amount) }
  const { number, due, buyerName, buyerAddress, isTaxIncluded } = entered
  return {
    ...base,
    kind,
    invoice: {
      number,
      taxIncluded: isTaxIncluded,
      lines: linesOf(entered),
      ...(due !== '' && { dueDate: due }),
      ...(buyerName !== '' && { buyerName }),
      ...(buyerAddress !== '' && { buyerAddress }),
    },
  }
}

/** Without lines, the title and the amount become the only line. */
function linesOf({ title, amount, taxRate, lines }: Entered): InvoiceLine[] {
  const given = lines.length > 0 ? lines : [{ text: title, quantity: '', unitAmount: amount, taxRate: '' }]
  return given.map((line) => ({
    text: line.text,
    quantity: withPoint(line.quantity || '1'),
    unitAmount: withPoint(line.unitAmount),
    taxRate: withPoint(line.taxRate || taxRate || '0'),
  }))
}

/** As chosen, but an invoice can be paid to the end of the day on which it is due. Days are those of the store's zone. */
function untilOf(entered: Entered, timeZone: string, now: Date): Date {
  const chosen = chosenUntil(entered, timeZone, now)
  // A day that is none is refused with the invoice.
  if (!isDate(entered.due)) return chosen
  const dueEnd = startOfDay(addDays(entered.due, 1), timeZone)
  return dueEnd > chosen ? dueEnd : chosen
}

function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
}

function chosenUntil({ until, date }: Entered, timeZone: string, now: Date): Date {
  if (until !== 'date') return new Date(now.getTime() + Number.parseInt(until, 10) * dayMs)
  if (!isDate(date)) throw mistake('/until', 'until', 'Must be a day.')
  return startOfDay(addDays(date, 1), timeZone)
}

function mistake(pointer: string, code: string, detail: string): Problem {
  return invalid({ pointer, code, detail } satisfies Mistake)
}

/** Which sentence to show for the Problem. */
export function faultOf({ code, extras }: Problem, texts: Texts['newPayment']['faults']): EntryFault | null {
  if (code === 'idempotency_key_reused') return 'used'
  if (code !== 'invalid_request') return hasText(texts, code) ? code : null
  const [{ pointer, code: what } = { pointer: '', code: '' }] = extras.errors ?? []
  if (what === 'ambiguous') return 'ambiguous'
  if (pointer.startsWith('/invoice'))
    return /\/(number|lines)/.exec(pointer)?.[1] === 'lines' ? 'lines' : 'invoice'
  const byField = {
    '/title': 'title',
    '/priceCurrency': 'currency',
    '/until': 'until',
    '/kind': 'kind',
  } as const
  return byField[pointer as keyof typeof byField] ?? 'amount'
}
