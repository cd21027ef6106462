import type { FastifyReply, FastifyRequest } from 'fastify'
import { readCookie } from '../../cookies.ts'
import { readPreferences } from '../../page/accept.ts'
import { en } from './en.ts'
import { es } from './es.ts'

export type Texts = typeof en

export type ConsoleLanguage = {
  /** BCP 47, for the page and for dates. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  /** The language's own name for itself. */
  readonly name: string
  readonly texts: Texts
}

const english: ConsoleLanguage = { tag: 'en', direction: 'ltr', name: 'English', texts: en }

export const languages: readonly ConsoleLanguage[] = [
  english,
  { tag: 'es', direction: 'ltr', name: 'Español', texts: es },
]

/** A year: a choice that people make once. */
const rememberedSeconds = 31_536_000
const cookie = 'language'

/** The language that the URL names, else the one chosen before, else the first of the browser's that we have, or English. */
export function languageOf(request: FastifyRequest): ConsoleLanguage {
  const { query, headers } = request
  const preferred = readPreferences(headers['accept-language']).map(({ value }) => value.split('-')[0])
  const tags = [askedIn(query), readCookie(request, cookie), ...preferred]
  const find = (tag: string | null | undefined) => languages.find((language) => language.tag === tag)
  return tags.map(find).find((language) => language !== undefined) ?? english
}

/** The console's texts in that language. */
export function textsOf(request: FastifyRequest): Texts {
  return languageOf(request).texts
}

/** Whether there is a text of that name. */
export function hasText<Group extends object>(group: Group, name: string): name is keyof Group & string {
  return Object.hasOwn(group, name)
}

/** Remembers the language that the URL names. It is no secret, so any script may read it. */
export function rememberLanguage({ query }: FastifyRequest, reply: FastifyReply): void {
  const language = languages.find(({ tag }) => tag === askedIn(query))
  if (!language) return
  reply.header('set-cookie', `${cookie}=${language.tag}; Path=/; SameSite=Lax; Max-Age=${rememberedSeconds}`)
}

function askedIn(query: unknown): string | undefined {
  const { lang } = (query ?? {}) as { lang?: unknown }
  return typeof lang === 'string' ? lang : undefined
}
