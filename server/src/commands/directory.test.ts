import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cell } from '../directory/rows.ts'
import { drawMaps, placeStore } from './directory.ts'

const now = new Date()
const cell = (tag: string, change: Partial<Cell> = {}): Cell => ({
  tag,
  apiUrl: 'https://pay.example',
  consoleUrl: `https://console-${tag}.example`,
  takesStores: true,
  stores: 1,
  paymentsPerHour: 100,
  seenAt: now,
  isAdopted: true,
  wallets: 0,
  settlers: 0,
  identity: tag,
  isContested: false,
  ...change,
})
const tagOf = (placed: ReturnType<typeof placeStore>) => ('cell' in placed ? placed.cell.tag : placed.refusal)

test('a new store goes to the cell of its owner or wallet, even a drained one, else to the least loaded that takes stores and runs', () => {
  const cells = [
    cell('00', { paymentsPerHour: 0, takesStores: false }),
    cell('01'),
    cell('02', { paymentsPerHour: 7 }),
    cell('03', { paymentsPerHour: 7, stores: 0 }),
    cell('04', { paymentsPerHour: 0, isAdopted: false }),
    // Away for longer than a restart, or not started yet.
    cell('05', { paymentsPerHour: 0, seenAt: new Date(now.getTime() - 601_000) }),
    cell('06', { paymentsPerHour: 0, seenAt: null }),
  ]
  assert.equal(tagOf(placeStore(cells, [], now)), '03')
  assert.equal(tagOf(placeStore(cells, ['00', '00'], now)), '00')
  assert.match(tagOf(placeStore(cells, ['00', '01'], now)), /different cells \(00, 01\)/)
  assert.match(tagOf(placeStore(cells, ['77'], now)), /no cell 77/)
  assert.match(tagOf(placeStore(cells.slice(0, 1), [], now)), /No cell takes new stores/)
})

test('the proxy’s maps lead each tag and each console to its cell, and sign-ups to one that takes stores', () => {
  const cells = [cell('00', { takesStores: false }), cell('01'), cell('02', { consoleUrl: '' })]
  assert.deepEqual(drawMaps(cells, now), {
    'cells.map': '00 cell_00\n01 cell_01\n02 cell_02\n',
    'consoles.map': 'console-00.example console_00\nconsole-01.example console_01\n',
    'placement.map': 'new https://console-01.example\n',
  })
  assert.equal(drawMaps(cells.slice(0, 1), now)['placement.map'], '')
})
