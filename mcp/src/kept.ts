import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { KeptPayments } from '@farthing/sdk/pay'

/**
 * Keeps signed payments on disk until their outcome is known, so that a restarted server submits the one it signed. They
 * are kept by the checkout's id, because a checkout has two URLs and must not be signed for at each.
 */
export function keptInFolder(folder: string): KeptPayments {
  const fileOf = (checkoutUrl: string) => join(folder, basename(new URL(checkoutUrl).pathname))
  return {
    get: (checkoutUrl) =>
      readFile(fileOf(checkoutUrl), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      }),
    async set(checkoutUrl, payment) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const file = fileOf(checkoutUrl)
      // Atomic, because half a payment could not be submitted again. Another process may be writing the same one.
      const draft = `${file}.${randomUUID()}`
      await writeFile(draft, payment, { mode: 0o600, flush: true })
      await rename(draft, file)
    },
    delete: (checkoutUrl) => rm(fileOf(checkoutUrl), { force: true }),
  }
}
