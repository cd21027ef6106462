import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeptPayments } from '@farthing/sdk/pay'

/** Keeps signed payments in files, so that a killed command resumes with the one it signed. Only this user can read them. */
export function keptInFolder(folder: string): KeptPayments {
  const fileOf = (checkoutUrl: string) => join(folder, encodeURIComponent(checkoutUrl))
  return {
    async get(checkoutUrl) {
      try {
        return await readFile(fileOf(checkoutUrl), 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async set(checkoutUrl, payment) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const file = fileOf(checkoutUrl)
      // Atomic, because half a payment could not be submitted again. Another process may be writing the same one.
      const draft = `${file}.${randomUUID()}`
      await writeFile(draft, payment, { mode: 0o600, flush: true })
      await rename(draft, file)
    },
    async delete(checkoutUrl) {
      await rm(fileOf(checkoutUrl), { force: true })
    },
  }
}
