/** Has a wallet in this browser sign the message that proves that it is the store's. */
import { Stop } from '../trouble.ts'
import { moveTo, type Provider, readChainId, type WalletChain } from '../wallets/provider.ts'
import { type StandardWallet, toBase58 } from '../wallets/standard.ts'
import { type Asker, connectEvm, connectSolana, textOf } from './place.ts'
import { post } from './post.ts'

export const proofAsker: Asker = {
  EVM: signOnEvm,
  SOLANA: signOnSolana,
  async use(signature) {
    const { to } = await post(textOf('present'), { signature })
    location.assign(to)
    return undefined
  },
}

/**
 * A contract wallet signs for one chain, so it must be on a chain where the store is paid. An ordinary wallet may be on
 * any chain.
 */
async function signOnEvm(provider: Provider): Promise<string> {
  const account = await connectEvm(provider)
  const chain: WalletChain = JSON.parse(textOf('network'))
  if ((await readChainId(provider)) !== chain.chainId) await moveTo(provider, chain)
  const bytes = new TextEncoder().encode(await getMessage())
  const text = `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
  const signature = await provider.request({ method: 'personal_sign', params: [text, account] })
  if (typeof signature !== 'string') throw new Stop('smart')
  return signature
}

async function signOnSolana(wallet: StandardWallet): Promise<string> {
  const account = await connectSolana(wallet)
  const signer = wallet.features['solana:signMessage']
  if (!signer) throw new Stop('smart')
  const message = new TextEncoder().encode(await getMessage())
  const [signed] = await signer.signMessage({ message, account })
  if (!signed) throw new Stop('failed')
  return toBase58(signed.signature)
}

/** Requested only now, because a new message replaces one that another person may be signing. */
async function getMessage(): Promise<string> {
  const { message }: { readonly message: string } = await post(textOf('challenge'), {})
  return message
}
