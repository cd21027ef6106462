import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeptRefunds } from '@farthing/sdk'
import type { KeptPayments } from '@farthing/sdk/pay'

/** Keeps signed payments in files, so that a killed command resumes with the one it signed. Only this user can read them. */
export function keptInFolder(folder: string): KeptPayments {
  const fileOf = (checkoutUrl: string) => join(folder, encodeURIComponent(checkoutUrl))
  return {
    get: (checkoutUrl) => readIfThere(fileOf(checkoutUrl)),
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
    keep: (name, payment) => keepFirst(folder, fileOf(name), payment),
  }
}

/** Writes the file unless another run was first. Returns what it contains. */
async function keepFirst(folder: string, file: string, text: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, text, { mode: 0o600, flush: true })
  try {
    // Unlike a rename, it fails if there is one.
    await link(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return await readFile(file, 'utf8')
}

/** Keeps forever what was signed for each refund, so that every run of the command signs the same or nothing. */
export function keptRefundsIn(folder: string): KeptRefunds {
  const fileOf = (refundId: string) => join(folder, encodeURIComponent(refundId))
  return {
    get: (refundId) => readIfThere(fileOf(refundId)),
    keep: (refundId, signedWith) => keepFirst(folder, fileOf(refundId), signedWith),
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
