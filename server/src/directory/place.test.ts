import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawMaps } from './maps.ts'
import { placeStore } from './place.ts'
import type { Cell } from './rows.ts'

const cell = (tag: string, change: Partial<Cell> = {}): Cell => ({
  tag,
  apiUrl: 'https://pay.example',
  consoleUrl: `https://console-${tag}.example`,
  takesStores: true,
  stores: 1,
  paymentsPerHour: 100,
  seenAt: null,
  isAsserted: true,
  adoptedAt: new Date(0),
  wallets: 0,
  settlers: 0,
  identity: tag,
  isDoubled: false,
  ...change,
})
const tagOf = (placed: ReturnType<typeof placeStore>) => ('cell' in placed ? placed.cell.tag : placed.refusal)

test('a new store goes to the cell of its owner or wallet, even a drained one, else to the least loaded that takes stores', () => {
  const cells = [
    cell('00', { paymentsPerHour: 0, takesStores: false }),
    cell('01'),
    cell('02', { paymentsPerHour: 7 }),
    cell('03', { paymentsPerHour: 7, stores: 0 }),
    cell('04', { paymentsPerHour: 0, adoptedAt: null }),
  ]
  assert.equal(tagOf(placeStore(cells, [])), '03')
  assert.equal(tagOf(placeStore(cells, ['00', '00'])), '00')
  assert.match(tagOf(placeStore(cells, ['00', '01'])), /different cells \(00, 01\)/)
  assert.match(tagOf(placeStore(cells, ['77'])), /no cell 77/)
  assert.match(tagOf(placeStore(cells.slice(0, 1), [])), /No cell takes new stores/)
})

test('the proxy’s maps lead each tag and each console to its cell, and sign-ups to one that takes stores', () => {
  const cells = [cell('00', { takesStores: false }), cell('01'), cell('02', { consoleUrl: '' })]
  assert.deepEqual(drawMaps(cells), {
    'cells.map': '00 cell_00\n01 cell_01\n02 cell_02\n',
    'consoles.map': 'console-00.example console_00\nconsole-01.example console_01\n',
    'placement.map': 'new https://console-01.example\n',
  })
  assert.equal(drawMaps(cells.slice(0, 1))['placement.map'], '')
})
