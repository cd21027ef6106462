import { isId } from '../../../ids.ts'

type SearchKind = 'checkout' | 'payment' | 'transaction' | 'address' | 'order'

export type Search = { readonly kind: SearchKind; readonly text: string }

/** Base58 as Solana writes it: 32 bytes make up to 44 characters, 64 bytes up to 88. */
const base58 = '[1-9A-HJ-NP-Za-km-z]'
const forms: readonly { readonly kind: SearchKind; readonly is: (text: string) => boolean }[] = [
  { kind: 'checkout', is: (text) => isId('ch', text) },
  { kind: 'payment', is: (text) => isId('pay', text) },
  { kind: 'transaction', is: (text) => new RegExp(`^(0x[0-9a-f]{64}|${base58}{85,88})$`, 'i').test(text) },
  { kind: 'address', is: (text) => new RegExp(`^(0x[0-9a-fA-F]{40}|${base58}{32,44})$`).test(text) },
]

/** What somebody pasted: told by its form. Whatever has none of the known forms is an order's id. */
export function recognise(pasted: string, asOrder = false): Search | null {
  const text = pasted.trim()
  if (text === '') return null
  const form = asOrder ? undefined : forms.find(({ is }) => is(text))
  return { kind: form?.kind ?? 'order', text }
}
