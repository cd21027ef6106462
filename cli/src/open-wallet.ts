import { type Signer, solanaSigner } from '@farthing/sdk/pay'
import { UsageError } from './command.ts'

/** A wallet from its key as people keep it: hexadecimal, or for Solana base58 or the numbers of a key file. */
export async function openWallet(privateKey: string, advice: string): Promise<Signer> {
  const key = privateKey.trim()
  if (/^0x[0-9a-fA-F]{64}$/.test(key)) {
    // Imported here because it is large and few commands need it.
    const { privateKeyToAccount } = await import('viem/accounts')
    return privateKeyToAccount(key as `0x${string}`)
  }
  try {
    return solanaSigner(key.startsWith('[') ? Uint8Array.from(JSON.parse(key)) : key)
  } catch {
    throw new UsageError(
      `${advice}: 0x and 64 hexadecimal digits, or for Solana, base58 or the 64 numbers of a key file.`,
    )
  }
}
