/** TLS to PostgreSQL, against a server with certificates of the test's own authority. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chownSync, copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDatabase } from '../../src/database/db.ts'
import { startCluster } from '../../src/dev/postgres.ts'
import { Problem } from '../../src/problems.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase } from '../support/database.ts'

const folder = mkdtempSync(join(tmpdir(), 'farthing-tls-'))
atEnd(() => rmSync(folder, { recursive: true, force: true }))
execFileSync('chmod', ['755', folder])
const at = (name: string) => join(folder, name)
const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

for (const ca of ['ours', 'other'])
  openssl(
    'req',
    '-x509',
    ...key,
    '-days',
    '2',
    '-subj',
    `/CN=${ca}`,
    '-keyout',
    `${ca}.key`,
    '-out',
    `${ca}.crt`,
  )
for (const [name, host] of [
  ['named', 'DNS:localhost'],
  ['numbered', 'IP:127.0.0.1'],
] as const) {
  openssl('req', ...key, '-subj', '/CN=database', '-keyout', `${name}.key`, '-out', `${name}.csr`)
  writeFileSync(at(`${name}.ext`), `subjectAltName=${host}\n`)
  const signing = ['-CA', 'ours.crt', '-CAkey', 'ours.key', '-CAcreateserial', '-extfile', `${name}.ext`]
  openssl('x509', '-req', '-days', '2', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signing)
}

const cluster = await startCluster(at('cluster'), ['cluster_name=farthing_tls', 'fsync=off'])
atEnd(() => cluster.stop())
const plain = cluster.url('postgres')
const data = at('cluster/data')

/** Makes the server use this certificate from now on. */
async function present(name: string): Promise<void> {
  for (const kind of ['crt', 'key']) {
    copyFileSync(at(`${name}.${kind}`), join(data, `server.${kind}`))
    chownSync(join(data, `server.${kind}`), statSync(data).uid, statSync(data).gid)
  }
  execFileSync('chmod', ['600', join(data, 'server.key')])
  const db = openDatabase({ url: plain, connections: 4, name: 'tls-setup' })
  await db.query('alter system set ssl = on')
  await db.query('select pg_reload_conf()')
  await db.close()
}

function withTls(url: string, host: string, ca: string) {
  const secured = new URL(url)
  secured.hostname = host
  secured.search = `sslmode=verify-full&sslrootcert=${encodeURIComponent(at(`${ca}.crt`))}`
  const db = openDatabase({ url: secured.href, connections: 4, name: 'tls' })
  atEnd(() => db.close())
  return db
}

async function refuses(url: string, host: string, ca: string, reason: RegExp): Promise<void> {
  const db = withTls(url, host, ca)
  const isRefused = (error: unknown) =>
    error instanceof Problem && error.code === 'unavailable' && reason.test(String(error.cause))
  await assert.rejects(db.query('select 1'), isRefused)
  await assert.rejects(
    db.transaction((tx) => tx.query('select 1')),
    isRefused,
  )
}

test('with verify-full every connection is encrypted, the listening one too, and goes to the host of the certificate only', async () => {
  const isEncrypted = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'
  for (const [certificate, right, wrong] of [
    ['named', 'localhost', '127.0.0.1'],
    ['numbered', '127.0.0.1', 'localhost'],
  ] as const) {
    await present(certificate)
    const db = withTls(plain, right, 'ours')
    assert.deepEqual(await db.query(isEncrypted), [{ ssl: true }])
    assert.deepEqual(await db.transaction((tx) => tx.query(isEncrypted)), [{ ssl: true }])
    const woken = new Promise<void>((resolve) => db.wakeUps.listen('events', resolve))
    const sender = withTls(plain, right, 'ours')
    await woken
    const again = new Promise<void>((resolve) => db.wakeUps.listen('events', resolve))
    sender.wakeUps.send('events')
    await again
    const [{ count } = { count: 0 }] = await db.query<{ count: number }>(
      `select count(*)::int from pg_stat_ssl join pg_stat_activity using (pid)
       where application_name = 'tls' and not ssl`,
    )
    assert.equal(count, 0)
    await refuses(plain, wrong, 'ours', /does not match|altnames/i)
    await refuses(plain, right, 'other', /unable to verify|self.signed|issuer/i)
  }
})

test('with verify-full a server without TLS is refused, and so is a certificate file that is missing', async () => {
  const { url } = await freshDatabase()
  await refuses(url, '127.0.0.1', 'ours', /does not support SSL/)
  assert.throws(
    () => withTls(url, '127.0.0.1', 'missing'),
    /^ConfigError: DATABASE_URL names a file in sslrootcert that cannot be read: ENOENT/,
  )
})
