import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../members/refusal.ts'
import { unitsToText } from '../../money.ts'
import type { Mistake } from '../../problems.ts'
import { checkEmail, checkText } from '../../stores/check-text.ts'
import type { Texts } from './texts/choose.ts'

type Fields = Readonly<Record<string, unknown>>

/** What a form or the script sent. */
export function fieldsOf({ body }: FastifyRequest): Fields {
  return (body ?? {}) as Fields
}

export function textOf(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}

/** A passkey's answer inside a form, where it is text. */
export function touchOf(fields: Fields): unknown {
  const { touch } = fields
  if (typeof touch !== 'string') return touch
  try {
    return JSON.parse(touch)
  } catch (cause) {
    throw new Refusal('passkey', { cause })
  }
}

/** The longest name of a person or a passkey, in bytes. */
const nameBytesMax = 100

/** A submitted form, and the language for its mistakes. */
type Form = { readonly field: (name: string) => string; readonly texts: Texts }

/** A name as people may write it. `label` is what the form calls it. */
export function readName({ field, texts }: Form, name: string, label = texts.team.name): string {
  const text = field(name)
  refuse(texts, label, checkText(name, text, nameBytesMax))
  return text
}

/** An address, or null if none was entered. */
export function readEmail({ field, texts }: Form): string | null {
  const text = field('email')
  if (text === '') return null
  refuse(texts, text, checkEmail('email', text))
  return text
}

function refuse(texts: Texts, label: string, [mistake]: readonly Mistake[]): void {
  if (!mistake) return
  const why = texts.mistakes[mistake.code as keyof Texts['mistakes']]
  throw new Refusal('invalid', { detail: `${label}: ${why}` })
}

/**
 * Amounts as people type them. Some write a comma before the decimals and a point between thousands, others the other way
 * round. Only amounts such as "1,500" and "1.500" are ambiguous; we ask instead of guessing.
 */

/** With a point before the decimals. What is not an amount stays as it is, for the parser to refuse. */
export function withPoint(typed: string): string {
  return typed.trim().replace(/^(\d+),(\d{1,6})$/, '$1.$2')
}

/** Whether it may mean thousands or decimals: "1,500", also "1.500" if the money does not have three decimals. */
export function isAmbiguous(typed: string, decimals: number): boolean {
  const [, separator] = /^[1-9]\d*([.,])\d{3}$/.exec(typed.trim()) ?? []
  return separator === ',' || (separator === '.' && decimals !== 3)
}

/** Units of a token as a form offers them: never in a form that is refused when it is sent. */
export function toTyped(units: bigint, decimals: number): string {
  const text = unitsToText(units, decimals)
  return isAmbiguous(text, decimals) ? `${text}0` : text
}

/** How many decimals a currency's amounts have, two if its name is unknown. */
export function currencyDecimals(currency: string): number {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency })
    return format.resolvedOptions().maximumFractionDigits ?? 2
  } catch {
    return 2
  }
}

/** Whether a limit allows nothing at all. */
export function isNothing(limit: string): boolean {
  return /^[0.]*$/.test(limit)
}
