import { setTimeout as wait } from 'node:timers/promises'
import { createKeyPairSignerFromBytes, type KeyPairSigner } from '@solana/kit'
import { makeSvmKey } from '../../server/src/chains/svm/signer.ts'
import { startLocalSvm } from '../../server/test/support/local-svm/start.ts'
import { ask } from '../checker/read-chain.ts'
import type { Memory } from './lies.ts'

/** Solana, as its documentation describes it. */
export const solana = {
  id: 'SOLANA_MAINNET',
  network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  mint: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
}

/** Half of Solana's, so that a run sees more blocks. */
const slotMs = 200
/** Half of Solana's, which is long enough that forks hit credited payments. */
export const finalizedAfter = 16
/** More than the life of a blockhash, and more than the server adds for nodes that are ahead. */
const lifetimeBlocks = 260
const blocksAtOnce = 10
/** Each settler's initial balance. */
export const settlerLamports = 10_000_000_000n

export type Ledger = Awaited<ReturnType<typeof openLedger>>

/** A Solana ledger that runs the real programs, and whose newest blocks can be taken back. */
export async function openLedger() {
  const mints = [{ address: solana.mint, decimals: 6 }]
  const { genesisHash } = solana
  const chain = await startLocalSvm({
    now: () => new Date(),
    slotMs: null,
    mints,
    genesisHash,
    finalizedAfter,
  })
  const mining = setInterval(() => chain.mine(), slotMs)
  const heightAt = async (commitment: string): Promise<number> => {
    const [height = 0] = await ask<number>(chain.url, [['getBlockHeight', { commitment }]])
    return height
  }

  return {
    url: chain.url,
    /** A new account with money. */
    async newPayer(units: bigint, lamports = 0n): Promise<KeyPairSigner> {
      const signer = await createKeyPairSignerFromBytes(newSecret())
      await chain.fund(signer.address, { token: [solana.mint, units], ...(lamports > 0n && { lamports }) })
      return signer
    },
    fund: chain.fund,
    async blockhash(commitment: 'confirmed' | 'finalized'): Promise<string> {
      const [latest] = await ask<{ value: { blockhash: string } }>(chain.url, [
        ['getLatestBlockhash', { commitment }],
      ])
      return latest?.value.blockhash ?? ''
    },
    async isBlockhashValid(blockhash: string): Promise<boolean> {
      const [valid] = await ask<{ value: boolean }>(chain.url, [
        ['isBlockhashValid', blockhash, { commitment: 'processed' }],
      ])
      return valid?.value ?? false
    },
    async isFinalized(signature: string): Promise<boolean> {
      const [statuses] = await ask<{ value: ({ confirmationStatus: string } | null)[] }>(chain.url, [
        ['getSignatureStatuses', [signature], { searchTransactionHistory: true }],
      ])
      return statuses?.value[0]?.confirmationStatus === 'finalized'
    },
    /** Sends a transaction as a stranger does who has seen it. */
    async send(encoded: string): Promise<void> {
      const settings = { encoding: 'base64', skipPreflight: true }
      await ask(chain.url, [['sendTransaction', encoded, settings]])
    },
    /**
     * Replaces as many of the newest blocks as possible. Their transactions are forgotten until they are sent again.
     */
    async fork(depth: number): Promise<void> {
      const possible = (await heightAt('processed')) - (await heightAt('finalized'))
      chain.fork(Math.min(depth, possible))
      chain.mine()
    },
    /** Lets blockhashes grow too old while nothing lands. Then sent transactions land if they still can. */
    async expire(): Promise<void> {
      chain.hold()
      await wait(slotMs * 2)
      for (let made = 0; made < lifetimeBlocks; made += blocksAtOnce) {
        chain.mine(blocksAtOnce)
        await wait(slotMs / 4)
      }
      chain.release()
    },
    /** Forgets new transactions, as a node that is about to die does, until the returned function is called. */
    forget(): () => void {
      chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
      return () => chain.meddle(null)
    },
    /** Sends the transactions of these seconds again, as strangers may at any time. */
    async sendAgain(sent: Memory, seconds: number): Promise<void> {
      const since = Date.now() - seconds * 1_000
      for (const { encoded, at } of [...sent.values()])
        if (at >= since) await this.send(encoded).catch(() => {})
    },
    /** Makes a block now. */
    mine: () => chain.mine(),
    /** No more blocks. */
    end: () => clearInterval(mining),
    async stop(): Promise<void> {
      clearInterval(mining)
      await chain.stop()
    },
  }
}

/** A settler's key as key files hold it, and its address. */
export async function newSettlerKey(): Promise<{ readonly key: string; readonly address: string }> {
  const key = makeSvmKey()
  const { address } = await createKeyPairSignerFromBytes(Uint8Array.from(JSON.parse(key) as number[]))
  return { key, address }
}

function newSecret(): Uint8Array {
  return Uint8Array.from(JSON.parse(makeSvmKey()) as number[])
}
