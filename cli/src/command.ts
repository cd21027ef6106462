import { createClient, type FarthingClient, isReadableOnTheWay } from '@farthing/sdk'
import type { Terminal } from './terminal.ts'

/** One command of the program. Its help text, options and argument checks are all derived from this value. */
export type Command = {
  /** One or two words: `checkout create`. */
  readonly name: string
  /** `<orderId> <amount> [currency]`. */
  readonly arguments: string
  readonly summary: string
  readonly options: Readonly<Record<string, Option>>
  /** Fields of the API that have another name here: `successRedirectUrl` is `--redirect`. */
  readonly fields?: Readonly<Record<string, string>>
  /** Printed below the options in the help text. */
  readonly notes?: readonly string[]
  /** Returns the exit code; undefined means 0. */
  readonly run: (call: Call) => Promise<number | undefined>
}

type Option = {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: boolean
  /** The placeholder for the value: the `n` in `--limit <n>`. */
  readonly value?: string
  readonly about: string
}

export type Call = {
  readonly terminal: Terminal
  readonly settings: Settings
  readonly values: Readonly<Record<string, unknown>>
  readonly positionals: readonly string[]
}

export type Settings = {
  readonly apiKey: string | undefined
  readonly url: string
  /** False if the URL is the default. */
  readonly isUrlGiven: boolean
  readonly privateKey: string | undefined
  readonly stateFolder: string
}

/** The command line is wrong. The message says how to write it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export function clientOf({ apiKey, url }: Settings): FarthingClient {
  if (!apiKey) throw new UsageError('Set FARTHING_API_KEY to your store’s API key (sk_…).')
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError(
      `Farthing runs at a URL such as http://127.0.0.1:8402, not ${url}. Set FARTHING_URL or --url.`,
    )
  if (isReadableOnTheWay(url))
    throw new UsageError(
      `${url} is not encrypted, and every request carries your API key. Use https; http is for this machine alone.`,
    )
  return createClient({ apiKey, baseUrl: url })
}

/** The value of `--name <text>`. */
export function textOf({ values }: Call, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

/** The filters of a list that the call names: each field of the API by its option. */
export function queryOf(call: Call, fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([field, option]) => {
      const value = textOf(call, option.slice(2))
      return value === undefined ? [] : [[field, value]]
    }),
  )
}

/** The values of `--metadata name=value`; undefined if there is none. */
export function metadataOf({ values }: Call): Record<string, string> | undefined {
  const given = values.metadata
  if (!Array.isArray(given)) return undefined
  return Object.fromEntries(
    given.map((pair: string) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new UsageError('--metadata is a name and a value: --metadata table=7.')
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

/** The value of `--name <n>`. */
export function countOf(call: Call, name: string, least: number, most: number): number | undefined {
  const text = textOf(call, name)
  if (text === undefined) return undefined
  const count = /^\d{1,9}$/.test(text) ? Number.parseInt(text, 10) : -1
  if (count < least || count > most)
    throw new UsageError(`--${name} must be a number from ${least} to ${most}.`)
  return count
}

/** `--limit` of a list: how many items to show, and the page size to request. */
export function limitsOf(call: Call): { readonly most: number; readonly limit: number } {
  const most = countOf(call, 'limit', 1, 100_000) ?? 20
  return { most, limit: Math.min(most, 100) }
}

export async function take<Item>(list: AsyncIterable<Item>, most: number): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of list) if (items.push(item) >= most) break
  return items
}
