import type { FastifyReply, FastifyRequest } from 'fastify'
import { readPreferences } from '../../page/accept.ts'
import { english } from './en.ts'
import { spanish } from './es.ts'
import type { Language } from './language.ts'

export const languages: readonly Language[] = [english, spanish]

/** A year: a choice that people make once. */
const rememberedSeconds = 31_536_000
const cookie = 'language'

/** The language that the URL names, else the one chosen before, else the first of the browser's that we have, or English. */
export function languageOf({ query, headers }: FastifyRequest): Language {
  const [, remembered] = new RegExp(`(?:^|; *)${cookie}=([a-z]{2})(?:;|$)`).exec(headers.cookie ?? '') ?? []
  const preferred = readPreferences(headers['accept-language']).map(({ value }) => value.split('-')[0])
  const tags = [askedIn(query), remembered, ...preferred]
  const find = (tag: string | undefined) => languages.find((language) => language.tag === tag)
  return tags.map(find).find((language) => language !== undefined) ?? english
}

/** Remembers the language that the URL names. It says nothing about anybody, so any script may read it. */
export function rememberLanguage({ query }: FastifyRequest, reply: FastifyReply): void {
  const language = languages.find(({ tag }) => tag === askedIn(query))
  if (!language) return
  reply.header('set-cookie', `${cookie}=${language.tag}; Path=/; SameSite=Lax; Max-Age=${rememberedSeconds}`)
}

function askedIn(query: unknown): string | undefined {
  const { lang } = (query ?? {}) as { lang?: unknown }
  return typeof lang === 'string' ? lang : undefined
}
