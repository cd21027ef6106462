/**
 * The part of the Wallet Standard that this page uses. A wallet registers when the page asks for wallets, or when it
 * loads later than the page.
 */
export type StandardWallet = {
  readonly name: string
  readonly icon: string
  readonly chains: readonly string[]
  readonly features: {
    readonly 'standard:connect'?: { connect(): Promise<{ accounts: readonly Account[] }> }
    readonly 'solana:signTransaction'?: {
      signTransaction(input: {
        readonly transaction: Uint8Array
        readonly account: Account
        readonly chain: string
      }): Promise<readonly { readonly signedTransaction: Uint8Array }[]>
    }
    readonly 'solana:signMessage'?: {
      signMessage(input: {
        readonly message: Uint8Array
        readonly account: Account
      }): Promise<readonly { readonly signature: Uint8Array }[]>
    }
  }
}

type Account = { readonly address: string }

export function watchStandardWallets(found: (wallet: StandardWallet) => void): void {
  const register = (...wallets: readonly StandardWallet[]) => {
    for (const wallet of wallets) {
      const { 'standard:connect': connect, 'solana:signTransaction': sign } = wallet?.features ?? {}
      if (connect && sign) found(wallet)
    }
    return () => {}
  }
  const api = { register }
  addEventListener('wallet-standard:register-wallet', (event) => {
    const { detail } = event as CustomEvent<(asked: typeof api) => void>
    if (typeof detail === 'function') detail(api)
  })
  dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }))
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Encodes bytes in base58, as Solana's tools write signatures. */
export function toBase58(bytes: Uint8Array): string {
  let value = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  let text = ''
  for (; value > 0n; value /= 58n) text = alphabet.charAt(Number.parseInt(`${value % 58n}`, 10)) + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros < 0 ? bytes.length : zeros) + text
}
