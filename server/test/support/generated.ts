import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { openLinkQueue } from '../../src/checkouts/links/open.ts'
import type { PayEngine } from '../../src/checkouts/pay.ts'
import { readConfig } from '../../src/config/read.ts'
import type { Context } from '../../src/context.ts'
import { openDatabase } from '../../src/database/db.ts'
import { openEventWaits } from '../../src/events/wait.ts'
import { listRoutes } from '../../src/http/app.ts'
import { describeApi } from '../../src/http/reference/openapi.ts'
import { openLog } from '../../src/log.ts'
import { openMetrics } from '../../src/metrics.ts'
import { openAuthenticator } from '../../src/stores/authenticate.ts'

export const schemaFile = new URL('../schema.sql', import.meta.url).pathname
export const openApiFile = new URL('../../../docs/api/openapi.json', import.meta.url).pathname

/** The migrated schema as SQL, without the parts that differ between installations. */
export async function dumpSchema(url: string): Promise<string> {
  const { stdout } = await promisify(execFile)('pg_dump', [
    '--schema-only',
    '--no-owner',
    '--no-privileges',
    '--no-comments',
    url,
  ])
  const lines = stdout.split('\n').filter((line) => !/^(--|SET |SELECT pg_catalog|\\)/.test(line))
  return `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()}\n`
}

/** The OpenAPI document as it is committed, with a URL that stands for any deployment's. */
export function generateOpenApi(): string {
  const config = readConfig({ DATABASE_URL: 'postgres://unused', BASE_URL: 'https://farthing.example' })
  // Routes are described, never called, and the database is not opened before its first use.
  const db = openDatabase({ url: config.databaseUrl, connections: 4, name: 'describe' })
  const ctx: Context = { config, db, log: openLog('silent'), metrics: openMetrics(), now: () => new Date() }
  const engine = {} as PayEngine
  const routes = listRoutes(ctx, engine, openAuthenticator(ctx), openEventWaits(ctx), openLinkQueue())
  const { store, pay, open } = routes
  return `${JSON.stringify(describeApi([...store, ...pay, ...Object.values(open)], config.baseUrl), null, 2)}\n`
}
