import assert from 'node:assert/strict'
import { atEnd } from '../../support/at-end.ts'
import { openAdmin } from '../../support/database.ts'
import type { Deployment } from './deployment.ts'

/** A copy of the database as it is now. Nobody may use the database while it is copied or put back. */
export async function copyDatabase({ databaseUrl, databaseName }: Deployment) {
  const admin = await openAdmin(new URL('/', databaseUrl).href)
  const copy = `${databaseName}_copy`
  atEnd(() => admin.query(`drop database if exists ${copy} with (force)`))
  const disconnect = () =>
    admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [databaseName])

  await disconnect()
  await admin.query(`create database ${copy} template ${databaseName}`)
  return {
    /** Puts the copy back; everything since then is lost. */
    async putBack(): Promise<void> {
      const [found] = await admin.query('select 1 as one from pg_database where datname = $1', [copy])
      assert(found, 'a copy can be put back only once')
      await disconnect()
      await admin.query(`drop database ${databaseName} with (force)`)
      await admin.query(`alter database ${copy} rename to ${databaseName}`)
    },
  }
}
