import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { ConfigError } from '../config/read.ts'

/**
 * How a connection to the database is encrypted. With `sslmode=verify-full` the server must prove, by a certificate of
 * `sslrootcert` (or of a public authority), that it is the host in the URL. The driver would do most of this, but it
 * compares the certificate of a host that is named by its address with `localhost`.
 */
type Secured = { readonly connectionString: string; readonly ssl?: ConnectionOptions }

const files = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const

export function secure(databaseUrl: string): Secured {
  const url = new URL(databaseUrl)
  if (url.searchParams.get('sslmode') !== 'verify-full') return { connectionString: databaseUrl }
  const ssl: ConnectionOptions = { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), rejectUnauthorized: true }
  for (const [parameter, option] of Object.entries(files)) {
    const file = url.searchParams.get(parameter)
    if (file !== null) ssl[option] = readText(parameter, file)
    url.searchParams.delete(parameter)
  }
  url.searchParams.delete('sslmode')
  return { connectionString: url.href, ssl }
}

function readText(parameter: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `DATABASE_URL names a file in ${parameter} that cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  }
}
