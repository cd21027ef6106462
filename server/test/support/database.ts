import assert from 'node:assert/strict'
import { type Database, openDatabase } from '../../src/database/db.ts'
import { randomText } from '../../src/ids.ts'
import { atEnd } from './at-end.ts'

/** An empty, migrated database for this test file alone, dropped when the file is done. */
export async function freshDatabase(template = 'template_farthing'): Promise<{ url: string; db: Database }> {
  const cluster = process.env.FARTHING_TEST_CLUSTER
  assert(cluster, 'Run tests with npm test, which starts PostgreSQL.')
  const name = `test_${randomText(12)}`
  const admin = await openAdmin(cluster)
  await admin.query(`create database ${name} template ${template}`)
  // A copy has the rows and rights of its template, but not the rights to the database itself.
  await admin.query(`revoke temporary on database ${name} from public`)
  const url = `${cluster}${name}`
  const db = openDatabase({ url, connections: 8, name: 'test' })
  atEnd(async () => {
    await db.close()
    await admin.query(`drop database ${name} with (force)`)
  })
  return { url, db }
}

/**
 * One connection, on which statements may take any time: creating and dropping a database waits for a checkpoint, which
 * can take a busy disk longer than any statement of the product may take.
 */
export async function openAdmin(cluster: string): Promise<Database> {
  const admin = openDatabase({ url: `${cluster}postgres`, connections: 2, name: 'test-admin' })
  // A step of its own: an open connection keeps this process, and with it the whole run, from ending.
  atEnd(() => admin.close())
  await admin.query('set statement_timeout = 0')
  return admin
}

type Role = 'owner' | 'serve' | 'work' | 'console' | 'operator' | 'audit'

/** The same database as another role. */
export function urlAs(role: Role, url: string): string {
  return Object.assign(new URL(url), { username: `farthing_${role}` }).href
}

/** A connection as a role, to try what it may not do: the suite knows by its name that these refusals are wanted. */
export function openAs(role: Role, url: string): Database {
  const db = openDatabase({ url: urlAs(role, url), connections: 4, name: 'test-roles' })
  atEnd(() => db.close())
  return db
}
