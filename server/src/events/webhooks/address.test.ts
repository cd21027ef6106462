import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../config/read.ts'
import { reachOf } from './address.ts'

const open = (settings: Record<string, string>) =>
  reachOf(
    readConfig({ DATABASE_URL: 'postgres://unused', BASE_URL: 'https://farthing.example', ...settings }),
    'live',
  )

test('a range that the operator allows opens every port inside it, and none outside', () => {
  const reach = open({ WEBHOOK_DANGEROUS_PRIVATE_NETWORKS: '10.1.0.0/16' })
  for (const port of ['', '443', '8443', '22', '9402']) {
    assert.equal(reach.allows('10.1.2.3', port), true, port)
    assert.equal(reach.allows('10.2.2.3', port), false, port)
    assert.equal(reach.allows('8.8.4.4', port), port === '' || port.endsWith('443'), port)
  }
  const mistakesIn = (url: string) => reach.check('/url', new URL(url)).length
  assert.equal(mistakesIn('https://8.8.4.4:22/'), 1)
  assert.equal(mistakesIn('https://10.1.2.3:22/'), 0)
  // The name may resolve into the range: every delivery attempt checks that.
  assert.equal(mistakesIn('https://hooks.example:22/'), 0)
  assert.equal(open({}).check('/url', new URL('https://hooks.example:22/')).length, 1)
})
