import type { FastifyReply, FastifyRequest } from 'fastify'
import { readCookie } from '../../cookies.ts'
import { type Html, html } from '../../page/html.ts'
import { type ConsoleLanguage, languageOf, languages, textsOf } from '../texts/choose.ts'

/** A year: a choice that people make once. */
const rememberedSeconds = 31_536_000

export const theme = makeChoice('theme', ['auto', 'light', 'dark'])
const details = makeChoice('details', ['shown', 'hidden'])

/** How this browser shows the console: what the URL names, else what a cookie remembers from before. */
function makeChoice<const Value extends string>(name: string, values: readonly Value[]) {
  const read = (text: unknown) => values.find((value) => value === text)
  const asked = ({ query }: FastifyRequest) => read(((query ?? {}) as Record<string, unknown>)[name])
  return {
    values,
    of: (request: FastifyRequest) => asked(request) ?? read(readCookie(request, name)),
    /** It is no secret, so any script may read it. */
    remember(request: FastifyRequest, reply: FastifyReply): void {
      const value = asked(request)
      if (value === undefined) return
      reply.header('set-cookie', `${name}=${value}; Path=/; SameSite=Lax; Max-Age=${rememberedSeconds}`)
    },
  }
}

export function rememberChoices(request: FastifyRequest, reply: FastifyReply): void {
  theme.remember(request, reply)
  details.remember(request, reply)
}

/** Whether screens also show what only developers read: the same by API, and records as JSON. */
export function showsDetails(request: FastifyRequest): boolean {
  const chosen = details.of(request)
  return chosen === undefined ? request.visitor.store?.role === 'developer' : chosen === 'shown'
}

/**
 * The choices, as links to this very page: they work without a script. The answer to a form has no address to come back
 * to, and may be the only time that a key or a link is shown: no choice leads away from it.
 */
export function renderChoices(request: FastifyRequest): Html | null {
  if (request.method !== 'GET') return null
  const texts = textsOf(request).frame
  const language = languageOf(request)
  const chosen = theme.of(request) ?? 'auto'
  const inLanguage = ({ tag, name }: ConsoleLanguage) => {
    const current = tag === language.tag && html` aria-current="true"`
    return html`<a href="${here(request, 'lang', tag)}" lang="${tag}" hreflang="${tag}"${current}>${name}</a>`
  }
  const inTheme = (each: (typeof theme.values)[number]) => {
    const current = each === chosen && html` aria-current="true"`
    return html`<a href="${here(request, 'theme', each)}"${current}>${texts.themes[each]}</a>`
  }
  const other = showsDetails(request) ? 'hidden' : 'shown'
  const more =
    request.visitor.store && html`<a href="${here(request, 'details', other)}">${texts.details[other]}</a>`
  return html`<nav aria-label="${language.texts.languages}">${languages.map(inLanguage)}</nav>
<nav aria-label="${texts.theme}">${theme.values.map(inTheme)}</nav>${more}`
}

/** This page with one more choice. */
function here(request: FastifyRequest, name: string, value: string): string {
  if (request.is404) return `/?${name}=${value}`
  const parameters = new URLSearchParams(request.url.split('?')[1] ?? '')
  parameters.set(name, value)
  return `?${parameters}`
}
