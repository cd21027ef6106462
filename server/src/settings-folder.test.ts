import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ConfigError } from './config.ts'
import { findSettings, readUser } from './settings-folder.ts'

const folder = mkdtempSync(join(tmpdir(), 'farthing-settings-'))
after(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, 'env'), '# ours\nBASE_URL=https://pay.example\nNETWORKS=BASE_MAINNET\n')
writeFileSync(join(folder, 'operator.env'), 'DATABASE_URL=postgres://operator@db/farthing\n')

test('where the environment names no database, the settings are those of the folder and of the role', () => {
  const found = findSettings('operator', { SETTINGS_FOLDER: folder, NETWORKS: 'BASE_SEPOLIA' })
  assert.equal(found.DATABASE_URL, 'postgres://operator@db/farthing')
  assert.equal(found.BASE_URL, 'https://pay.example')
  assert.equal(found.NETWORKS, 'BASE_SEPOLIA', 'the environment goes first')
  assert.equal(findSettings(null, { SETTINGS_FOLDER: folder }).DATABASE_URL, undefined)
  assert.equal(findSettings('serve', { SETTINGS_FOLDER: folder }).DATABASE_URL, undefined)
})

test('an environment that names a database is taken as it is', () => {
  const environment = { SETTINGS_FOLDER: folder, DATABASE_URL: 'postgres://other' }
  assert.equal(findSettings('operator', environment), environment)
})

test('a folder that is not there says nothing, and a file that cannot be read is named', () => {
  assert.deepEqual(Object.keys(findSettings('operator', { SETTINGS_FOLDER: '/nowhere' })), [
    'SETTINGS_FOLDER',
  ])
  mkdirSync(join(folder, 'broken', 'env'), { recursive: true })
  assert.throws(
    () => findSettings(null, { SETTINGS_FOLDER: join(folder, 'broken') }),
    (error) => error instanceof ConfigError && /broken\/env cannot be read/.test(error.message),
  )
})

test('with sudo, the command is of whoever typed it', () => {
  assert.equal(readUser({ SUDO_USER: 'ann' }), 'ann')
  assert.notEqual(readUser({}), '')
})
