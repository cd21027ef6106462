import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../members/refusal.ts'
import type { Mistake } from '../../problems.ts'
import { checkEmail, checkText } from '../../stores/check-text.ts'
import { languageOf } from './texts/choose.ts'

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
export function readName(request: FastifyRequest, name: string): string {
  const text = textOf(fieldsOf(request), name)
  refuse(request, name, checkText(name, text, nameBytesMax))
  return text
}

/** A text as people may write it; `label` is what the form calls it. */
export function readText(request: FastifyRequest, name: string, label: string): string {
  const text = textOf(fieldsOf(request), name)
  refuse(request, label, checkText(name, text, nameBytesMax))
  return text
}

/** An address, or null if none was entered. */
export function readEmail(request: FastifyRequest): string | null {
  const text = textOf(fieldsOf(request), 'email')
  if (text === '') return null
  refuse(request, text, checkEmail('email', text))
  return text
}

/** Says what is wrong in the language of the page. */
function refuse(request: FastifyRequest, label: string, mistakes: readonly Mistake[]): void {
  const [mistake] = mistakes
  if (!mistake) return
  const { mistakes: sentences, team } = languageOf(request).texts
  const why = sentences[mistake.code as keyof typeof sentences]
  throw new Refusal('invalid', { detail: `${label === 'name' ? team.name : label}: ${why}` })
}
