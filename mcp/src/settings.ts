import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { type Signer, solanaSigner } from '@farthing/sdk/pay'
import { privateKeyToAccount } from 'viem/accounts'
import { parseDollars } from './dollars.ts'

/**
 * Everything that decides about money comes from the environment, which the person who starts the server sets. Nothing
 * comes from a tool's arguments: a language model writes those, and a text that it has read may mislead it.
 */
export type Settings = {
  /** Where Farthing runs. Ids are looked up at the first URL; checkout URLs may start with any of them. */
  readonly urls: readonly string[]
  readonly wallet: Wallet | null
  readonly apiKey: string | null
  readonly stateFolder: string
}

export type Wallet = {
  readonly signer: Signer
  /** In US dollars, as it was written. */
  readonly maxPerPayment: string
  /** In millionths of a US dollar. */
  readonly maxPerDay: bigint
}

type Environment = Readonly<Record<string, string | undefined>>

/** Thrown by readSettings: the message lists every mistake, one per line, and repeats no secret. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
}

export function readSettings(environment: Environment): Settings {
  const mistakes: string[] = []
  const urls = readUrls(environment.FARTHING_URL ?? 'http://127.0.0.1:8402', mistakes)
  const wallet = readWallet(environment, mistakes)
  const folder = environment.XDG_STATE_HOME || `${environment.HOME ?? ''}/.local/state`
  const isFolderKnown = isAbsolute(environment.XDG_STATE_HOME || environment.HOME || '')
  // At another path the day's sum would start at zero, and a signed payment would be signed again.
  if (wallet && !isFolderKnown)
    mistakes.push(
      'Set HOME or XDG_STATE_HOME to an absolute path: what the wallet spends each day is recorded there.',
    )
  if (mistakes.length > 0) throw new SettingsError(mistakes.join('\n'))
  return { urls, wallet, apiKey: environment.FARTHING_API_KEY || null, stateFolder: `${folder}/farthing/mcp` }
}

function readUrls(text: string, mistakes: string[]): string[] {
  const urls = text.split(',').map((each) => each.trim().replace(/\/+$/, ''))
  const isGood = (each: string) => {
    if (!URL.canParse(each)) return false
    const { protocol, hostname, username, password, search, hash } = new URL(each)
    const isLocal = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
    return (
      (protocol === 'https:' || (protocol === 'http:' && isLocal)) &&
      `${username}${password}${search}${hash}` === ''
    )
  }
  if (!urls.every(isGood))
    mistakes.push(
      'FARTHING_URL must be one or more https URLs, separated by commas; http only on this machine.',
    )
  return urls
}

function readWallet(environment: Environment, mistakes: string[]): Wallet | null {
  const { FARTHING_PRIVATE_KEY: key = '', FARTHING_PRIVATE_KEY_FILE: file = '' } = environment
  if (key === '' && file === '') return null
  if (key !== '' && file !== '')
    mistakes.push('Set FARTHING_PRIVATE_KEY or FARTHING_PRIVATE_KEY_FILE, not both.')
  const signer = openSigner(file === '' ? key : readKeyFile(file, mistakes))
  if (!signer)
    mistakes.push(
      'The private key must be 0x and 64 hexadecimal digits or, for Solana, base58 or the 64 numbers of a key file.',
    )
  const limitOf = (name: string) => {
    const limit = parseDollars(environment[name] ?? '')
    if (limit === null) mistakes.push(`${name} must be an amount in US dollars, such as 5.00.`)
    return limit
  }
  const perPayment = limitOf('FARTHING_MAX_PER_PAYMENT')
  const maxPerDay = limitOf('FARTHING_MAX_PER_DAY')
  if (!signer || perPayment === null || maxPerDay === null) return null
  return { signer, maxPerPayment: environment.FARTHING_MAX_PER_PAYMENT ?? '', maxPerDay }
}

function readKeyFile(file: string, mistakes: string[]): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    mistakes.push(`FARTHING_PRIVATE_KEY_FILE cannot be read: ${(error as NodeJS.ErrnoException).code}.`)
    return ''
  }
}

function openSigner(key: string): Signer | null {
  try {
    if (/^0x[0-9a-fA-F]{64}$/.test(key)) return privateKeyToAccount(key as `0x${string}`)
    return solanaSigner(key.startsWith('[') ? Uint8Array.from(JSON.parse(key)) : key)
  } catch {
    // The libraries' messages may quote the key.
    return null
  }
}
