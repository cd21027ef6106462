/**
 * Signs a refund with a wallet in this browser. The screen says how to sign without one. The wallet signs the server's
 * data only if it matches the screen.
 */
import { Stop } from '../trouble.ts'
import { moveTo, type Provider, readChainId, signTyped, type WalletChain } from '../wallets/provider.ts'
import { fromBase64, type StandardWallet, toBase64 } from '../wallets/standard.ts'
import { type Asker, connectEvm, connectSolana, isSame, textOf } from './place.ts'
import { post, Refused } from './post.ts'

export const refundAsker: Asker = {
  EVM: signOnEvm,
  SOLANA: signOnSolana,
  async use(signed, family) {
    const { to } = await post(
      textOf('present'),
      family === 'EVM' ? { signature: signed } : { transaction: signed },
    )
    location.assign(to)
    return undefined
  },
}

type Prepared = {
  readonly typedData?: { readonly message: Readonly<Record<'from' | 'to' | 'value', unknown>> }
  readonly transaction?: string
}

async function signOnEvm(provider: Provider): Promise<string> {
  const account = await connectEvm(provider)
  const chain: WalletChain = JSON.parse(textOf('network'))
  if ((await readChainId(provider)) !== chain.chainId) await moveTo(provider, chain)
  const { typedData }: Prepared = await post(textOf('prepare'), {})
  const message = typedData?.message
  const isShown =
    isSame(message?.from, textOf('from')) &&
    isSame(message?.to, textOf('recipient')) &&
    String(message?.value) === textOf('units')
  if (!isShown) throw new Stop('changed')
  return await signTyped(provider, account, JSON.stringify(typedData))
}

async function signOnSolana(wallet: StandardWallet): Promise<string> {
  const account = await connectSolana(wallet)
  const signer = wallet.features['solana:signTransaction']
  if (!signer) throw new Refused(textOf('account'))
  const { chain }: { readonly chain: string } = JSON.parse(textOf('network'))
  if (!wallet.chains.includes(chain)) throw new Stop('chain')
  const { transaction }: Prepared = await post(textOf('prepare'), {})
  if (typeof transaction !== 'string') throw new Stop('changed')
  const [signed] = await signer.signTransaction({ transaction: fromBase64(transaction), account, chain })
  if (!signed) throw new Stop('failed')
  return toBase64(signed.signedTransaction)
}
