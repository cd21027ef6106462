/**
 * A Wallet Standard wallet as a page sees it, injected before the page's own script. It may register late, decline or
 * never answer. The test process does the signing, in `standardWalletSign`.
 */
// biome-ignore lint/correctness/noUnusedVariables: this file's text is injected into pages.
function installStandardWallet({ name, address, chains, late, hang, refuse, id }) {
  const account = Object.freeze({ address, publicKey: new Uint8Array(32), chains, features: [] })
  const answer = async (feature, work) => {
    if (hang === feature) return await new Promise(() => {})
    if (refuse?.[feature]) throw Object.assign(new Error(refuse[feature]), {})
    return await work()
  }
  const wallet = Object.freeze({
    version: '1.0.0',
    name,
    icon: 'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"%3E%3Crect width="32" height="32" rx="8" fill="%23512da8"/%3E%3Ccircle cx="16" cy="16" r="8" fill="%23fff"/%3E%3C/svg%3E',
    chains,
    accounts: [],
    features: {
      'standard:connect': {
        version: '1.0.0',
        connect: () => answer('standard:connect', () => ({ accounts: [account] })),
      },
      'solana:signMessage': {
        version: '1.0.0',
        signMessage: (...inputs) =>
          answer('solana:signMessage', () =>
            Promise.all(
              inputs.map(async ({ message, account: signer }) => {
                if (signer !== account) throw new Error('Not an account of this wallet')
                const signature = await window.standardWalletSignMessage(id, [...message])
                return { signedMessage: message, signature: Uint8Array.from(signature) }
              }),
            ),
          ),
      },
      'solana:signTransaction': {
        version: '1.0.0',
        supportedTransactionVersions: ['legacy', 0],
        signTransaction: (...inputs) =>
          answer('solana:signTransaction', () =>
            Promise.all(
              inputs.map(async ({ transaction, account: signer, chain }) => {
                if (signer !== account) throw new Error('Not an account of this wallet')
                if (!chains.includes(chain)) throw new Error(`The wallet does not know ${chain}`)
                const signed = await window.standardWalletSign(id, [...transaction])
                return { signedTransaction: Uint8Array.from(signed) }
              }),
            ),
          ),
      },
    },
  })
  const register = ({ register }) => register(wallet)
  const announce = () =>
    window.dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }))
  window.addEventListener('wallet-standard:app-ready', ({ detail }) => {
    if (!late) register(detail)
  })
  window.announceStandardWallet = () => announce()
  if (!late) announce()
}
