import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseEnv } from 'node:util'
import { nodeNetworks } from '../networks.ts'
import { ConfigError, findSettings, readConfig, readUser } from './read.ts'

const needed = { DATABASE_URL: 'postgres://localhost/farthing', BASE_URL: 'https://farthing.example' }

test('the two required settings are enough', () => {
  const config = readConfig(needed)
  assert.equal(config.checkoutPageUrl, 'https://farthing.example/pay')
  assert.equal(config.keyRequestsPerSecond, 100)
  assert.equal(config.addressRequestsPerSecond, 20)
  assert.equal(config.bodyLimitBytes, 65_536)
})

test('all mistakes are reported at once, each with the name of its setting', () => {
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

test('an unknown network is refused with its name', () => {
  assert.throws(() => readConfig({ ...needed, NETWORKS: 'BASE_MAINNET,BASE_MAINET' }), /BASE_MAINET/)
})

test('base URLs with a trailing slash, fragment or credentials are refused', () => {
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

test('.env.example is a working configuration', () => {
  const config = readConfig(parseEnv(readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8')))
  assert(config.databaseUrl && config.baseUrl)
})

test('every network has a setting for its nodes, empty by default', () => {
  const config = readConfig({ ...needed, BASE_MAINNET_RPC_URLS: 'https://a.example,https://b.example' })
  assert.deepEqual(
    Object.keys(config.nodes),
    nodeNetworks.map(({ id }) => id),
  )
  assert.deepEqual(config.nodes.BASE_MAINNET, [
    { provider: 'a.example', url: 'https://a.example' },
    { provider: 'b.example', url: 'https://b.example' },
  ])
  assert.deepEqual(config.nodes.LOCAL, [])
  assert.throws(() => readConfig({ ...needed, LOCAL_RPC_URLS: 'localhost' }), /LOCAL_RPC_URLS must be URLs/)
  assert.throws(() => readConfig({ ...needed, LOCAL_RPC_URLS: 'a=b' }), /LOCAL_RPC_URLS must be URLs/)
})

test('a label before a node’s URL names its provider; without one, its host does', () => {
  const urls = 'alpha=https://a.example/v2?key=1, https://b.example:81/x?y=http://z'
  const { nodes } = readConfig({ ...needed, BASE_MAINNET_RPC_URLS: urls })
  assert.deepEqual(nodes.BASE_MAINNET, [
    { provider: 'alpha', url: 'https://a.example/v2?key=1' },
    { provider: 'b.example:81', url: 'https://b.example:81/x?y=http://z' },
  ])
})

test('a live network’s nodes are reached by https, unless they are on this machine or in a private network', () => {
  const read = (setting: string, url: string) => readConfig({ ...needed, [setting]: url })
  for (const host of [
    'node.example',
    'a.b.example.',
    '8.8.4.4',
    '172.32.0.1',
    '[2606:4700::1]',
    '[::ffff:8.8.4.4]',
    'local.example',
    'xlocal.example',
    '127.0.0.1.example',
  ]) {
    for (const name of ['BASE_MAINNET', 'SOLANA_MAINNET'])
      assert.throws(
        () => read(`${name}_RPC_URLS`, `https://a.example,http://${host}:8545/KEY`),
        (error) => {
          assert(error instanceof ConfigError)
          assert.match(error.message, new RegExp(`^${name}_RPC_URLS has http://.*use https://`), host)
          assert(!error.message.includes('KEY'))
          return true
        },
      )
    read('BASE_MAINNET_RPC_URLS', `https://${host}/`)
    read('BASE_SEPOLIA_RPC_URLS', `http://${host}/`)
  }
  for (const host of [
    'localhost',
    'any.localhost',
    '127.0.0.1',
    '2130706433',
    '[::1]',
    '10.1.2.3',
    '172.31.255.255',
    '192.168.0.1',
    '100.64.0.1',
    '169.254.1.1',
    '[fd00::1]',
    '[fe80::1]',
    '[::ffff:10.0.0.1]',
    'base-node',
    'base.internal',
    'node.base.local',
  ])
    read('BASE_MAINNET_RPC_URLS', `http://${host}:8545/`)
})

test('mails need a sender and sealed secrets, and are off unless a mail server is named', () => {
  const mail = { SMTP_URL: 'smtps://u:p@mail.example', MAIL_FROM: 'a@b.example', SECRETS_KEY_FILE: '/k' }
  assert.equal(readConfig(needed).smtpUrl, '')
  assert.equal(readConfig({ ...needed, ...mail }).smtpUrl, mail.SMTP_URL)
  for (const [change, says] of [
    [{ MAIL_FROM: '' }, /SMTP_URL needs MAIL_FROM/],
    [{ SECRETS_KEY_FILE: '' }, /SMTP_URL needs SECRETS_KEY_FILE/],
    [{ MAIL_FROM: 'a@b.example\r\nBcc: c@d.example' }, /MAIL_FROM must be an e-mail address/],
    [{ SMTP_URL: 'https://mail.example' }, /SMTP_URL must be smtp/],
    [{ SMTP_URL: 'smtp://mail.example/?tls=no' }, /SMTP_URL must be smtp/],
  ] as const)
    assert.throws(() => readConfig({ ...needed, ...mail, ...change }), says)
})

test('the console has a host of its own, with a name, and is off unless it is named', () => {
  assert.equal(readConfig(needed).consoleUrl, '')
  const local = { ...needed, BASE_URL: 'http://127.0.0.1:8402' }
  const mistakes: readonly [settings: Readonly<Record<string, string>>, mistake: RegExp][] = [
    [{ ...needed, CONSOLE_URL: 'https://farthing.example:8443' }, /host of its own, but BASE_URL/],
    [
      { ...needed, CHECKOUT_PAGE_URL: 'https://pay.example/c', CONSOLE_URL: 'https://pay.example' },
      /host of its own, but CHECKOUT_PAGE_URL/,
    ],
    [{ ...needed, CONSOLE_URL: 'https://192.0.2.7' }, /a name instead of an IP address/],
    [{ ...needed, CONSOLE_URL: 'https://[2001:db8::1]' }, /a name instead of an IP address/],
    [{ ...needed, CONSOLE_URL: 'https://console.example/' }, /must be an origin/],
    [{ ...needed, CONSOLE_URL: 'http://console.example' }, /must begin with https/],
    [
      { ...needed, CONSOLE_URL: 'http://localhost:8403' },
      /only where BASE_URL is an address of this machine/,
    ],
    [{ ...local, CONSOLE_URL: 'http://127.0.0.1:8403' }, /a name instead of an IP address/],
  ]
  for (const [settings, mistake] of mistakes) assert.throws(() => readConfig(settings), mistake)
  assert.equal(readConfig({ ...local, CONSOLE_URL: 'http://localhost:8403' }).consolePort, 8403)
  assert.equal(
    readConfig({ ...needed, CONSOLE_URL: 'https://console.farthing.example' }).consoleUrl,
    'https://console.farthing.example',
  )
})

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

test('with sudo, the user is the one who typed the command', () => {
  assert.equal(readUser({ SUDO_USER: 'ann' }), 'ann')
  assert.notEqual(readUser({}), '')
})
