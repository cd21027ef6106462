import type { FastifyReply, FastifyRequest } from 'fastify'
import { readCookie } from '../../cookies.ts'

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

/** A year: a choice that people make once. */
const rememberedSeconds = 31_536_000

/** The theme that the URL names, else the one chosen before, else the system's. */
export function themeOf(request: FastifyRequest): Theme {
  return readTheme(askedIn(request.query)) ?? readTheme(readCookie(request, 'theme')) ?? 'auto'
}

/** Remembers the theme that the URL names. It is no secret, so any script may read it. */
export function rememberTheme({ query }: FastifyRequest, reply: FastifyReply): void {
  const theme = readTheme(askedIn(query))
  if (theme) reply.header('set-cookie', `theme=${theme}; Path=/; SameSite=Lax; Max-Age=${rememberedSeconds}`)
}

function readTheme(text: unknown): Theme | undefined {
  return themes.find((theme) => theme === text)
}

function askedIn(query: unknown): unknown {
  return ((query ?? {}) as { theme?: unknown }).theme
}
