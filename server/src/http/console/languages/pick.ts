import type { FastifyRequest } from 'fastify'
import { languageOf } from './choose.ts'

/** The texts of one screen, in every language of the console. */
export type Texts<Shape> = Readonly<Record<'en' | 'es', Shape>>

/** Those in the language of the request. */
export function pick<Shape>(texts: Texts<Shape>, request: FastifyRequest): Shape {
  return texts[languageOf(request).tag]
}
