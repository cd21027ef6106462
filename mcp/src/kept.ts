import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { KeptPayments } from '@farthing/sdk/pay'

/**
 * Keeps signed payments on disk until their outcome is known, so that a restarted server submits the one it signed. A
 * payment is kept by its checkout's id, because a checkout has two URLs but must be signed for only once. The origin
 * that it was signed for is kept too, because no other host may see the payment.
 */
export function keptInFolder(folder: string): KeptPayments {
  const fileOf = (checkoutUrl: string) => join(folder, basename(new URL(checkoutUrl).pathname))
  return {
    async get(checkoutUrl) {
      const text = await readFile(fileOf(checkoutUrl), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      })
      if (text === undefined) return undefined
      const [payment = '', signedFor] = text.split('\n')
      if (signedFor !== undefined && signedFor !== new URL(checkoutUrl).origin)
        throw new Error(
          `A payment for this checkout was signed for ${signedFor}, and no other host gets that signature. Pass the checkout’s URL at that host. Nothing was signed now.`,
        )
      return payment
    },
    async set(checkoutUrl, payment) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const file = fileOf(checkoutUrl)
      // Atomic, because half a payment could not be submitted again. Another process may be writing the same one.
      const draft = `${file}.${randomUUID()}`
      await writeFile(draft, `${payment}\n${new URL(checkoutUrl).origin}`, { mode: 0o600, flush: true })
      await rename(draft, file)
    },
    delete: (checkoutUrl) => rm(fileOf(checkoutUrl), { force: true }),
  }
}
