import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../members/refusal.ts'
import type { Mistake } from '../../problems.ts'
import { checkText } from '../../stores/check-text.ts'

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

/** A name as people may write it. */
export function readName(fields: Fields, name: string): string {
  const text = textOf(fields, name)
  refuse('Name', checkText(name, text, nameBytesMax))
  return text
}

export function refuse(label: string, mistakes: readonly Mistake[]): void {
  const [mistake] = mistakes
  if (mistake) throw new Refusal('invalid', { detail: `${label}: ${mistake.detail}` })
}
