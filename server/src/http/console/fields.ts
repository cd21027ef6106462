import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../members/refusal.ts'
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
