import { createClient, type FarthingClient } from '@farthing/sdk'
import type { Terminal } from './terminal.ts'

/** One thing that the program can do. Its help, its options and its checks come from this value. */
export type Command = {
  /** One or two words: `checkout create`. */
  readonly name: string
  /** `<orderId> <amount> [currency]`. */
  readonly arguments: string
  readonly summary: string
  readonly options: Readonly<Record<string, Option>>
  /** Lines below the options. */
  readonly notes?: readonly string[]
  /** Returns the exit code, if it is not 0. */
  readonly run: (call: Call) => Promise<number | undefined>
}

type Option = {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: boolean
  /** `--limit <n>`: what stands in the brackets. */
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
  readonly privateKey: string | undefined
  readonly stateFolder: string
}

/** The command was not written as it must be. The message is how. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export function clientOf({ apiKey, url }: Settings): FarthingClient {
  if (!apiKey) throw new UsageError('Set FARTHING_API_KEY to your store’s key, sk_…')
  return createClient({ apiKey, baseUrl: url })
}

/** The value of `--name <text>`. */
export function textOf({ values }: Call, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
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

/** `--limit` of a list: how many to show, and the size of a page to ask for. */
export function limitsOf(call: Call): { readonly most: number; readonly limit: number } {
  const most = countOf(call, 'limit', 1, 100_000) ?? 20
  return { most, limit: Math.min(most, 100) }
}

export async function take<Item>(list: AsyncIterable<Item>, most: number): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of list) if (items.push(item) >= most) break
  return items
}
