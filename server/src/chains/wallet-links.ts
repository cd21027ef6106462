import type { EvmNetwork, Network } from '../networks.ts'

/** The network's data for a browser wallet; null if no wallet knows it. `rpcUrl` is public. */
export function describeForWallets(network: Network, rpcUrl: string | null) {
  switch (network.family) {
    case 'SIMULATED':
      return null
    case 'SOLANA':
      return { family: network.family, chain: network.walletStandardChain }
    case 'EVM':
      return describeEvm(network, rpcUrl)
  }
}

function describeEvm(network: EvmNetwork, rpcUrl: string | null) {
  const { family, caip2, name, nativeCurrency, explorerUrl } = network
  const chainId = Number.parseInt(caip2.replace('eip155:', ''), 10)
  // In the form that EIP-3085 requires.
  const chain = {
    chainId: `0x${chainId.toString(16)}`,
    chainName: name,
    nativeCurrency,
    rpcUrls: rpcUrl ? [rpcUrl] : [],
    ...(explorerUrl && { blockExplorerUrls: [explorerUrl] }),
  }
  return { family, chainId, chain }
}

/**
 * A link that opens a payment in a wallet app, in the network's own standard; null where no reliable one exists. On
 * Solana (Solana Pay) the wallet adds the reference to the transfer, and we find the transfer by it.
 */
export function paymentLink(
  network: Network | undefined,
  transfer: { readonly payTo: string; readonly asset: string; readonly reference: string | null },
  amount: string,
  label: string,
): string | null {
  if (network?.family !== 'SOLANA' || transfer.reference === null) return null
  const { payTo, asset, reference } = transfer
  // Not encoded like a form, because spaces must be %20 here.
  return `solana:${payTo}?amount=${amount}&spl-token=${asset}&reference=${reference}&label=${encodeURIComponent(label)}`
}
