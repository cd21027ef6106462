import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Problem } from '../problems.ts'
import { parseBody } from './body.ts'

const refused = (text: string | Buffer) =>
  assert.throws(
    () => parseBody(Buffer.from(text)),
    (error) => error instanceof Problem && error.code === 'malformed_json',
    String(text),
  )

test('valid JSON is parsed exactly as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      assert.deepEqual(parseBody(Buffer.from(text)), JSON.parse(text))
    }),
  )
})

test('a duplicate key is rejected, even if it is escaped or nested', () => {
  refused('{"priceAmount":"1","priceAmount":"2"}')
  refused('{"priceAmount":"1","price\\u0041mount":"2"}')
  refused('{"a":{"b":1,"c":[{}],"b":2}}')
  refused('{"a" \n\t : 1, "a":2}')
  parseBody(Buffer.from('{"a":"a","b":{"a":"a"},"c":["a","a"]}'))
})

test('nesting deeper than 8 levels is rejected, even if it is 100,000 levels deep', () => {
  parseBody(Buffer.from(`${'['.repeat(8)}${']'.repeat(8)}`))
  refused(`${'['.repeat(9)}${']'.repeat(9)}`)
  refused('['.repeat(100_000))
  refused('{"a":'.repeat(100_000))
})

test('invalid JSON and invalid UTF-8 are rejected', () => {
  for (const text of ['{', '{"a":1,}', "{'a':1}", '{"a":NaN}', 'undefined', '"\u0001"', '{} {}'])
    refused(text)
  refused(Buffer.from([0x22, 0xff, 0xfe, 0x22]))
  refused(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))
})

test('any bytes are either parsed or rejected with a problem', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        fc.string().map((text) => Buffer.from(text)),
        fc.string({ unit: fc.constantFrom(...'{}[]":,\\ \n0a') }).map((text) => Buffer.from(text)),
      ),
      (bytes) => {
        try {
          parseBody(Buffer.from(bytes))
        } catch (error) {
          assert(error instanceof Problem)
        }
      },
    ),
    { numRuns: 5_000 },
  )
})
