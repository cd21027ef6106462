/** Addresses that open a page in a wallet app's own browser. Each app writes them in its own way. */
export function deepLinks(url: string): { readonly name: string; readonly href: string }[] {
  const encoded = encodeURIComponent(url)
  return [
    // Without a scheme and unescaped: escaped, it opens an empty tab.
    { name: 'MetaMask', href: `https://link.metamask.io/dapp/${url.replace(/^https?:\/\//, '')}` },
    { name: 'Coinbase Wallet', href: `https://go.cb-w.com/dapp?cb_url=${encoded}` },
    {
      name: 'Phantom',
      href: `https://phantom.app/ul/browse/${encoded}?ref=${encodeURIComponent(new URL(url).origin)}`,
    },
    { name: 'Trust Wallet', href: `https://link.trustwallet.com/open_url?coin_id=60&url=${encoded}` },
    {
      name: 'OKX Wallet',
      href: `https://web3.okx.com/download?deeplink=${encodeURIComponent(`okx://wallet/dapp/url?dappUrl=${encoded}`)}`,
    },
  ]
}
