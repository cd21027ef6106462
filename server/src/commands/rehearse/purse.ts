import { createPrivateKey, randomUUID, sign } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeptRefunds } from '@farthing/sdk'
import { type KeptPayments, type Signer, solanaSigner } from '@farthing/sdk/pay'
import { getBase58Decoder, getBase58Encoder } from '@solana/kit'
import { privateKeyToAccount } from 'viem/accounts'
import { parseWalletAddress } from '../../chains/families.ts'
import type { Hex } from '../../chains/hex.ts'
import type { Network } from '../../networks.ts'
import { StepFailed } from './report.ts'

/** A wallet whose key the operator has in a file. */
export type Purse = {
  readonly signer: Signer
  readonly signText: (text: string) => Promise<string>
  readonly kept: KeptPayments & KeptRefunds
}

/** Opens a wallet of the network's family, from its key as people keep it. */
export async function openPurse({ family, name }: Network, file: string): Promise<Purse> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new StepFailed(
      `${file} cannot be read: ${error.message}`,
      'Name a file with the key of the wallet, which this user can read.',
    )
  })
  const opened = openKey(text.trim())
  if (!opened || 'refusal' in parseWalletAddress(family, opened.signer.address))
    throw new StepFailed(
      `${file} does not hold the key of a wallet on ${name}`,
      'It must be the private key alone: 0x and 64 hexadecimal digits, or for Solana base58 or the 64 numbers of a key file.',
    )
  const folder = `${file}.signed`
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw new StepFailed(
      `${folder} cannot be made: ${error.message}`,
      'What the wallet signs is kept there. Put its key into a folder that this user can write to.',
    )
  })
  return { ...opened, kept: keepIn(folder) }
}

function openKey(text: string): Omit<Purse, 'kept'> | null {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) {
    const account = privateKeyToAccount(text as Hex)
    return { signer: account, signText: (message) => account.signMessage({ message }) }
  }
  const secret = readSecret(text)
  if (secret?.length !== 64) return null
  const half = (from: number) => Buffer.from(secret.slice(from, from + 32)).toString('base64url')
  const key = createPrivateKey({
    key: { kty: 'OKP', crv: 'Ed25519', d: half(0), x: half(32) },
    format: 'jwk',
  })
  return {
    signer: solanaSigner(secret),
    signText: async (message) => getBase58Decoder().decode(sign(null, Buffer.from(message), key)),
  }
}

/** The 64 bytes of a key file; null if the text is neither that nor base58. */
function readSecret(text: string): Uint8Array<ArrayBuffer> | null {
  if (/^\[[\d\s,]+\]$/.test(text))
    return Uint8Array.from(text.slice(1, -1).split(','), (number) => Number.parseInt(number, 10))
  return /^[1-9A-HJ-NP-Za-km-z]{64,90}$/.test(text) ? new Uint8Array(getBase58Encoder().encode(text)) : null
}

/**
 * Keeps what the wallet has signed beside its key, before it is sent: a run that follows a killed one submits the same
 * again. What was written first stays.
 */
function keepIn(folder: string): Purse['kept'] {
  const fileOf = (name: string) => join(folder, encodeURIComponent(name))
  const keep = async (name: string, signed: string) => {
    const draft = join(folder, randomUUID())
    await writeFile(draft, signed, { mode: 0o600, flush: true })
    try {
      // Unlike a rename, it fails if another run was first.
      await link(draft, fileOf(name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      await rm(draft, { force: true })
    }
    return await readFile(fileOf(name), 'utf8')
  }
  return {
    get: (name) =>
      readFile(fileOf(name), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      }),
    async set(name, signed) {
      if ((await keep(name, signed)) !== signed)
        throw new StepFailed(
          'another run has signed a payment of this checkout',
          'Let it end. Then run the same line again.',
        )
    },
    delete: (name) => rm(fileOf(name), { force: true }),
    keep,
  }
}
