import { readFileSync } from 'node:fs'

/** A request and its answer, as a test got it. */
export type Example = {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly status: number
  readonly answer: object
}

/** By operation. */
export type Examples = Readonly<Record<string, readonly Example[]>>

const file = new URL('../../../../docs/api/examples.json', import.meta.url)

/** The committed examples. An operation that has none yet is described without. */
export function readExamples(): Examples {
  return JSON.parse(readFileSync(file, 'utf8')) as Examples
}
