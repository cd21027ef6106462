import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { nodeNetworks } from '../networks.ts'
import type { Environment, Setting } from './parse.ts'
import {
  auditSetting,
  type Config,
  type FixedConfig,
  findContradictions,
  rpcSetting,
  settings,
} from './settings.ts'

/**
 * The only reader of the environment. `readConfig` is pure and reports every mistake at once, each as a sentence that
 * names the setting, so that an operator can fix all of them at once.
 */
export function readConfig(environment: Environment = process.env): Config {
  const mistakes: string[] = []
  const fixed = Object.fromEntries(
    Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, environment, mistakes)]),
  )
  const nodesBy = (settingOf: typeof rpcSetting) =>
    Object.fromEntries(
      nodeNetworks.map((network) => [network.id, readSetting(settingOf(network), environment, mistakes)]),
    )
  const [nodes, auditNodes] = [nodesBy(rpcSetting), nodesBy(auditSetting)]
  const read = fixed as unknown as FixedConfig
  if (mistakes.length === 0) mistakes.push(...findContradictions(read))
  if (mistakes.length > 0) throw new ConfigError(mistakes.join('\n'))
  return { ...fixed, nodes, auditNodes } as Config
}

function readSetting(setting: Setting<unknown>, environment: Environment, mistakes: string[]): unknown {
  const { name, fallback } = setting
  const text = environment[name] ?? (typeof fallback === 'function' ? fallback(environment) : fallback)
  if (text === undefined || (text === '' && fallback === undefined)) {
    mistakes.push(`${name} is required: ${setting.about}`)
    return undefined
  }
  const parsed = setting.parse(text)
  if ('value' in parsed) return parsed.value
  // If the default is built from another setting, the mistake is in that setting and listed already.
  if (environment[name] !== undefined || typeof fallback === 'string')
    mistakes.push(`${name} ${parsed.mistake}`)
  return undefined
}

/** Thrown by readConfig: the message lists every mistake, one per line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** The settings that `dev` reads. It decides all others itself. */
export function readDevChoices(environment: Environment = process.env): {
  readonly databaseUrl: string | null
  readonly port: number
  readonly consolePort: number
} {
  const { DATABASE_URL = '', PORT = '8402', CONSOLE_PORT } = environment
  const standIns = { DATABASE_URL: DATABASE_URL || 'postgres://none', BASE_URL: 'http://none', PORT }
  const { port } = readConfig(standIns)
  const { consolePort } = readConfig({ ...standIns, CONSOLE_PORT: CONSOLE_PORT ?? `${port + 1}` })
  return { databaseUrl: DATABASE_URL || null, port, consolePort }
}

/** The settings that `signer` reads. It has no database and no address on the network. */
export function readSignerChoices(environment: Environment = process.env): Config {
  return readConfig({ ...environment, DATABASE_URL: 'postgres://none', BASE_URL: 'http://none' })
}

/** For local chains: the file of a token to use instead of ours (see dev/placement.ts); empty for ours. */
export function readTokenArtifact(environment: Environment = process.env): string {
  return environment.TOKEN_ARTIFACT ?? ''
}

/** Where an installed deployment has its settings: `env`, and a file with the login of each database role. */
const settingsFolder = '/etc/farthing'

/**
 * The environment. If it names no database, missing settings come from the files of an installed deployment. Without a
 * role, no file with a login is read.
 */
export function findSettings(role: string | null, environment: Environment = process.env): Environment {
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

/** The user who typed the command, also with sudo. */
export function readUser(environment: Environment = process.env): string {
  return environment.SUDO_USER || userInfo().username
}
