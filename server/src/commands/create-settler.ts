import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import { toShown } from '../chains/families.ts'
import type { Network } from '../networks.ts'
import { makeSettlerKey, readSigner } from '../payments/rails.ts'

/** The outcome of `settler create`: the text to print, or why nothing was created. */
export type Created = { readonly says: string } | { readonly refusal: string }

/**
 * Makes a settler's key and appends it to a file of keys that only its owner can read. The key is never printed: a
 * terminal remembers what it showed, and so do the logs of the program that ran it.
 */
export async function createSettler(network: Network, file: string): Promise<Created> {
  const key = makeSettlerKey(network)
  if (key === null) return { refusal: `${network.name} needs no settler.` }
  const signer = readSigner(key)
  assert(signer, 'a key that we made can be read')
  const address = toShown(network.caip2, signer.address)
  const keys = await open(file, 'a+', 0o600).catch((error: NodeJS.ErrnoException) => error)
  if (keys instanceof Error) return { refusal: `${file} cannot be written: ${keys.message}.` }
  try {
    const { mode } = await keys.stat()
    if ((mode & 0o077) !== 0)
      return { refusal: `Others can read ${file}. Run: chmod 600 ${file}, then run this command again.` }
    const before = await keys.readFile('utf8')
    const isWhole = before === '' || before.endsWith('\n')
    await keys.appendFile(`${isWhole ? '' : '\n'}# ${address}\n${key}\n`)
    await keys.sync()
  } finally {
    await keys.close()
  }
  const { id, name, nativeCurrency } = network
  return {
    says: [
      `Settler ${address}`,
      `Its key is in ${file}, which only its owner can read. Back it up: a lost key cannot be restored.`,
      `Next: send it some ${nativeCurrency.symbol} on ${name}. Then run`,
      `  settler deploy ${id}`,
      `  settler add ${id} ${address}`,
      `and start work, or restart it, with SETTLER_KEYS_FILE=${file}.`,
    ].join('\n'),
  }
}
