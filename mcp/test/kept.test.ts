import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from '../../server/test/support/at-end.ts'
import { keptInFolder } from '../src/kept.ts'

test('servers that share a folder keep payments for one checkout at the same time, and one whole payment stays', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-kept-'))
  atEnd(() => rm(folder, { recursive: true }))
  const url = 'https://shop.example/c/ch_1'
  const payments = Array.from({ length: 20 }, (_, i) => String(i).repeat(2_000))
  await Promise.all(payments.map((payment) => keptInFolder(folder).set(url, payment)))
  assert(payments.includes((await keptInFolder(folder).get(url)) ?? ''))
  assert.deepEqual(await readdir(folder), ['ch_1'])
})

test('a payment is not handed to another host that has a checkout with the same id, and no second one is signed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-kept-'))
  atEnd(() => rm(folder, { recursive: true }))
  const kept = keptInFolder(folder)
  await kept.set('https://shop.example/c/ch_1', 'signed')
  assert.equal(await kept.get('https://shop.example/api/v1/checkouts/ch_1'), 'signed')
  for (const url of [
    'https://other.example/c/ch_1',
    'http://shop.example/c/ch_1',
    'https://shop.example:444/c/ch_1',
  ])
    await assert.rejects(async () => await kept.get(url), /signed for https:\/\/shop\.example/)
  assert.equal(await kept.get('https://other.example/c/ch_2'), undefined)
})
