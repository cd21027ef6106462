import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import { ConfigError, readConfig, settings } from './config.ts'

const needed = { DATABASE_URL: 'postgres://localhost/farthing', BASE_URL: 'https://farthing.example' }

test('the two required settings are enough', () => {
  const config = readConfig(needed)
  assert.equal(config.checkoutPageUrl, 'https://farthing.example/pay')
  assert.equal(config.keyRequestsPerSecond, 100)
  assert.equal(config.addressRequestsPerSecond, 20)
  assert.equal(config.bodyLimitBytes, 65_536)
})

test('every mistake is reported at once, each by its setting’s name', () => {
  const environment = {
    DATABASE_URL: 'mysql://x',
    PORT: '70000',
    CELL: 'ABC',
    MIGRATE_ON_START: 'yes',
    LOG_LEVEL: 'loud',
  }
  assert.throws(
    () => readConfig(environment),
    (error) => {
      assert(error instanceof ConfigError)
      const lines = error.message.split('\n')
      assert.equal(lines.length, 6)
      for (const name of ['DATABASE_URL', 'PORT', 'BASE_URL', 'CELL', 'MIGRATE_ON_START', 'LOG_LEVEL']) {
        assert.equal(lines.filter((line) => line.startsWith(name)).length, 1, name)
      }
      return true
    },
  )
})

test('an unknown network is refused by name', () => {
  assert.throws(() => readConfig({ ...needed, NETWORKS: 'BASE_MAINNET,BASE_MAINET' }), /BASE_MAINET/)
})

test('base addresses with a trailing slash, fragment or credentials are refused', () => {
  for (const url of [
    'https://a.example/',
    'https://a.example#x',
    'https://u:p@a.example',
    'ftp://a.example',
    'a.example',
  ]) {
    assert.throws(() => readConfig({ ...needed, BASE_URL: url }), /^ConfigError: BASE_URL must/, url)
  }
})

test('.env.example names every setting once, with its default and what it is for', () => {
  const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
  const required = parseEnv(text)
  const config = readConfig(required)
  for (const { name, about, fallback } of Object.values(settings)) {
    const lines = text.split('\n').filter((line) => line.replace('# ', '').startsWith(`${name}=`))
    assert.equal(lines.length, 1, `${name} should be there once`)
    assert(text.includes(`# ${about}\n`), `${name} should be explained`)
    if (typeof fallback === 'string') assert.equal(lines[0], `# ${name}=${fallback}`)
  }
  assert.equal(text.match(/^(# )?[A-Z_]+=/gm)?.length, Object.keys(settings).length)
  assert(config.databaseUrl && config.baseUrl)
})
