import type { Family } from '../../../networks.ts'

/** Links that open the page in the built-in browser of wallet apps that can pay there. Each app has its own format. */
export function deepLinks(
  url: string,
  offered: { has(family: Family): boolean },
): { readonly name: string; readonly href: string }[] {
  const encoded = encodeURIComponent(url)
  const origin = encodeURIComponent(new URL(url).origin)
  const apps: { name: string; families: Family[]; href: string }[] = [
    {
      name: 'MetaMask',
      families: ['EVM', 'SOLANA'],
      // No scheme and no escaping: an escaped URL opens an empty tab.
      href: `https://link.metamask.io/dapp/${url.replace(/^https?:\/\//, '')}`,
    },
    { name: 'Coinbase Wallet', families: ['EVM'], href: `https://go.cb-w.com/dapp?cb_url=${encoded}` },
    {
      name: 'Phantom',
      families: ['EVM', 'SOLANA'],
      href: `https://phantom.app/ul/browse/${encoded}?ref=${origin}`,
    },
    {
      name: 'Solflare',
      families: ['SOLANA'],
      href: `https://solflare.com/ul/v1/browse/${encoded}?ref=${origin}`,
    },
    {
      name: 'Trust Wallet',
      families: ['EVM'],
      href: `https://link.trustwallet.com/open_url?coin_id=60&url=${encoded}`,
    },
    {
      name: 'OKX Wallet',
      families: ['EVM', 'SOLANA'],
      href: `https://web3.okx.com/download?deeplink=${encodeURIComponent(`okx://wallet/dapp/url?dappUrl=${encoded}`)}`,
    },
  ]
  return apps.filter(({ families }) => families.some((family) => offered.has(family)))
}
