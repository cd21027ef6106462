import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError, readEnvironment } from './config.ts'
import type { Environment } from './parse-setting.ts'

/** Where an installed deployment has its settings: `env`, and a file with the login of each database role. */
const settingsFolder = '/etc/farthing'

/**
 * The environment; where it names no database, with what the files of an installed deployment say beside it. Without a
 * role, nothing of a login is read.
 */
export function findSettings(role: string | null, environment = readEnvironment()): Environment {
  if (environment.DATABASE_URL !== undefined) return environment
  const folder = environment.SETTINGS_FOLDER || settingsFolder
  const files = ['env', ...(role === null ? [] : [`${role}.env`])]
  return Object.assign({}, ...files.map((name) => readSettingsFile(join(folder, name))), environment)
}

function readSettingsFile(file: string): Environment {
  try {
    return parseEnv(readFileSync(file, 'utf8'))
  } catch (error) {
    assert(error instanceof Error && 'code' in error)
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return {}
    if (error.code === 'EACCES') throw new ConfigError(`Only root can read ${file}: run this with sudo.`)
    throw new ConfigError(`${file} cannot be read: ${error.message}.`)
  }
}

/** Who typed the command: with sudo, whoever typed that. */
export function readUser(environment = readEnvironment()): string {
  return environment.SUDO_USER || userInfo().username
}
