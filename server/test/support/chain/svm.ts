import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { createKeyPairSignerFromBytes, type KeyPairSigner } from '@solana/kit'
import { openSvmSigner, type SvmSigner } from '../../../src/chains/svm/signer.ts'
import { networks } from '../../../src/networks.ts'
import { atEnd } from '../at-end.ts'
import { startLocalSvm } from '../local-svm/start.ts'

/** The genesis hashes of the public clusters, by which stock clients identify networks. */
const genesisHashes: Readonly<Record<string, string>> = {
  SOLANA_MAINNET: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  SOLANA_DEVNET: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
}

export type SvmOptions = {
  readonly network: 'SOLANA_LOCAL' | 'SOLANA_MAINNET' | 'SOLANA_DEVNET'
  /** Null: only `mine` produces blocks. */
  readonly slotMs?: number | null
  readonly finalizedAfter?: number
  /** The time of its blocks. */
  readonly now?: () => Date
  /** Asks nodes as rarely as the network's entry says, as if the chain were not many times as fast as the real one. */
  readonly isSparing?: true
}

/** Its slots are shorter than real ones, and it is final after fewer of them. */
const lookEveryMs = { sent: 100, unsettled: 400, idle: 500 }

export type TestSvm = Awaited<ReturnType<typeof openSvm>>

/** A Solana chain for this test file alone, stopped when the file is done. */
export async function openSvm(options: SvmOptions) {
  const { network: name, slotMs = 100, finalizedAfter = 8 } = options
  const network = networks.find(({ id }) => id === name)
  assert(network?.family === 'SOLANA')
  if (!options.isSparing) Object.assign(network, { lookEveryMs })
  const [asset] = network.assets
  assert(asset)
  const genesisHash = genesisHashes[name]
  const chain = await startLocalSvm({
    now: options.now ?? (() => new Date()),
    slotMs,
    mints: network.assets,
    finalizedAfter,
    ...(genesisHash && { genesisHash }),
  })
  atEnd(() => chain.stop())
  const mint = asset.address
  return {
    ...chain,
    network,
    mint,
    /** Creates a payer with money. */
    async payer(units = 1_000_000_000n): Promise<KeyPairSigner> {
      const signer = await createKeyPairSignerFromBytes(newSecret())
      await chain.fund(signer.address, { token: [mint, units] })
      return signer
    },
    async rpc<Result>(method: string, params: readonly unknown[] = []): Promise<Result> {
      const response = await fetch(chain.url, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
      assert(!error, error?.message)
      return result
    },
  }
}

/** 64 bytes, as key files hold them. */
function newSecret(): Uint8Array {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return Buffer.concat([
    privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32),
    publicKey.export({ format: 'der', type: 'spki' }).subarray(-32),
  ])
}

export type TestSettler = SvmSigner & { readonly secret: Uint8Array }

/** Creates a settler with SOL for fees. */
export async function newSettler(chain: TestSvm, lamports = 10_000_000_000n): Promise<TestSettler> {
  const secret = newSecret()
  const signer = openSvmSigner(secret)
  await chain.fund(signer.address, { lamports })
  return { ...signer, secret }
}
