import assert from 'node:assert/strict'
import { glob } from 'node:fs/promises'
import { test } from 'node:test'

/** What each thing is called in Spanish, and what else it might be called. */
const words: readonly (readonly [word: string, others: RegExp])[] = [
  ['cartera', /moneder|billeter/i],
  ['cobro', /checkout/i],
  ['caducado', /\bvenc/i],
  ['reembolso', /devoluci/i],
  ['tarde', /tardí/i],
  ['de menos', /incomplet|demasiado poco/i],
  ['sin cobro', /sin asignar/i],
  ['usted', /\b(tú|tu|tus|te|ti|contigo)\b/i],
]

const src = new URL('../../../src/http/', import.meta.url).pathname

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value.replaceAll(/\{\w+\}/g, '')
  else if (typeof value === 'object' && value !== null)
    for (const one of Object.values(value)) yield* textsIn(one)
}

async function readSpanish(): Promise<Map<string, string[]>> {
  const read = new Map<string, string[]>()
  for await (const path of glob('{console,page}/**/es.ts', { cwd: src })) {
    const module: Record<string, unknown> = await import(`${src}${path}`)
    read.set(path, [...textsIn(module)])
  }
  return read
}

test('in Spanish each thing has one name, and readers are addressed in one way', async () => {
  const spanish = await readSpanish()
  assert.deepEqual([...spanish.keys()].sort(), ['console/texts/es.ts', 'page/languages/es.ts'])
  for (const texts of spanish.values()) assert(texts.length > 50)
  const wrong = [...spanish].flatMap(([path, texts]) =>
    texts.flatMap((text) =>
      words.filter(([, others]) => others.test(text)).map(([word]) => `${path}: "${text}" (${word})`),
    ),
  )
  assert.deepEqual(wrong, [])
})
