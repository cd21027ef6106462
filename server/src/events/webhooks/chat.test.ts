import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import fc from 'fast-check'
import { chatBody, escapeFor, maskUrl, withoutUrl } from './chat.ts'

const hostile = [
  '<!channel>',
  '<!here|x>',
  '<@U012AB3CD>',
  '@everyone',
  '@here',
  '<@&123456789012345678>',
  '<https://evil.example|your store>',
  '[your store](https://evil.example)',
  'https://evil.example',
  'evil.example',
  '`code` ```block```',
  '*bold* _italic_ ~gone~ ||spoiler|| __under__',
  '# heading',
  '> quote',
  '\u202egpj.exe',
  '\u2066x\u2069\u200f',
  'one\r\ntwo\u2028three\u0085four',
  '\\',
  '\\*x\\*',
  '&lt;!channel&gt;',
  '<:smile:1>',
  ':smile:',
  'x'.repeat(10_000),
  '\ud800',
]
const text = fc.oneof(
  fc.constantFrom(...hostile),
  fc.string({ unit: 'binary' }),
  fc.array(fc.constantFrom(...hostile, ' ', 'a'), { maxLength: 5 }).map((parts) => parts.join('')),
)

const eventOf = (orderId: string, name: string, type = 'checkout.completed') =>
  ({
    id: 'evt_1',
    type,
    actor: { type: 'member', id: 'mem_1', name },
    data: {
      checkout: { id: 'ch_1', orderId, priceAmount: '12.50', priceCurrency: 'EUR' },
      member: { name, role: 'owner' },
    },
  }) as unknown as Event

const oneLine = /^[^\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u

test('nothing in a line for Slack is markup, a mention or a link, whatever the names', () => {
  fc.assert(
    fc.property(text, text, (orderId, name) => {
      const body = JSON.parse(chatBody('slack', eventOf(orderId, name), 'live'))
      assert.deepEqual(Object.keys(body), ['text'])
      const line: string = body.text
      assert.doesNotMatch(line, /[<>*~`]|:\/\/|@[^\u200b ]/u)
      assert.doesNotMatch(line.replaceAll(/&(amp|lt|gt);/g, ''), /&/)
      assert.match(line, oneLine)
      assert(line.length < 4_000, `${line.length}`)
    }),
    { numRuns: 500 },
  )
})

test('nothing in a line for Discord is markup, a mention or a link, whatever the names', () => {
  fc.assert(
    fc.property(text, text, (orderId, name) => {
      const body = JSON.parse(chatBody('discord', eventOf(orderId, name), 'live'))
      assert.deepEqual(Object.keys(body), ['content', 'allowed_mentions'])
      assert.deepEqual(body.allowed_mentions, { parse: [] })
      const line: string = body.content
      // What remains without the escaped characters has no markup.
      assert.doesNotMatch(line.replaceAll(/\\[\p{P}\p{S}]/gu, ''), /[\\*_~`|<>#:@[\]()]/)
      assert.doesNotMatch(line, /everyone(?<=[^\u200b]everyone)(?<=@everyone)|:\/\//)
      assert.match(line, oneLine)
      assert(line.length <= 2_000, `${line.length}`)
    }),
    { numRuns: 500 },
  )
})

test('ordinary names stay as they are', () => {
  assert.equal(escapeFor('slack', 'order_12-B (Åsa & Co)'), 'order_12-B (Åsa &amp; Co)')
  assert.equal(escapeFor('discord', 'order_12 Åsa & Co'), 'order\\_12 Åsa & Co')
  assert.equal(
    JSON.parse(chatBody('slack', eventOf('order-1', 'Olga'), 'test')).text,
    'Test store: Paid: 12.50 EUR for order order-1 (ch_1), Olga, owner, by Olga',
  )
  const told = JSON.parse(chatBody('slack', eventOf('order-1', 'Olga', 'member.invited'), 'live')).text
  assert.match(told, /^Security: Member invited: /)
})

test('a masked URL and a receiver’s answer have nothing of the path', () => {
  const part = fc.stringMatching(/^[0-9a-zA-Z_-]{8,60}$/)
  const urls = fc
    .tuple(part, part)
    .map(([a, b]) => ({ a, b, url: `https://hooks.slack.example/services/${a}/${b}` }))
  fc.assert(
    fc.property(urls, ({ a, b, url }) => {
      const masked = maskUrl(url)
      assert.match(masked, /^https:\/\/hooks\.slack\.example\/\*{3}[0-9a-f]{8}$/)
      assert.equal(new URL(masked).href, masked)
      const said = withoutUrl(`no_service at ${url} or /services/${a}/${b}, token ${b}`, url)
      assert(!said.includes(a) && !said.includes(b), said)
      assert(said.startsWith('no_service at [redacted]'))
    }),
  )
})
