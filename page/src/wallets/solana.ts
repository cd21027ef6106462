import { show, showHolder } from '../show.ts'
import { path, type SolanaOption } from '../terms.ts'
import { Stop } from '../trouble.ts'
import { checkIsShown, offerFor, paymentHeader } from './offer.ts'
import { fromBase64, type StandardWallet, toBase64 } from './standard.ts'

/** Connects the wallet, has the server build the transaction and has the wallet sign it. The server pays the fee. */
export async function signOnSolana(
  wallet: StandardWallet,
  checkIsMine: () => void,
  isAgain: boolean,
): Promise<string> {
  const { 'standard:connect': connector, 'solana:signTransaction': signer } = wallet.features
  const [account] = (await connector?.connect())?.accounts ?? []
  checkIsMine()
  const option = offerFor('SOLANA')
  if (!account || !signer) throw new Stop('changed')
  checkIsShown(option)
  if (!wallet.chains.includes(option.chain)) throw new Stop('chain')
  const sign = async (step: 'signing' | 'again') => {
    const transaction = await prepare(option, account.address)
    checkIsMine()
    show(step)
    const since = Date.now()
    const [signed] = await signer.signTransaction({ transaction, account, chain: option.chain })
    checkIsMine()
    return { signed, isLate: Date.now() - since > freshMs }
  }
  const first = await sign(isAgain ? 'again' : 'signing')
  // One that is about to expire would be sent and lost, and the buyer would wait until that is certain. It stays here.
  const { signed } = first.isLate ? await sign('again') : first
  if (!signed) throw new Stop('failed')
  return paymentHeader(option, { transaction: toBase64(signed.signedTransaction) })
}

/** A transaction can be included for 150 blocks, about 32 seconds; it takes a few of them to verify and to send it. */
const freshMs = 25_000

async function prepare({ accepted, decimals }: SolanaOption, payer: string): Promise<Uint8Array> {
  const answer = await fetch(`${path}/prepare`, {
    method: 'POST',
    body: new URLSearchParams({ network: accepted.network, payer }),
  })
  const { transaction, error } = await answer.json()
  if (error === 'insufficient_funds') {
    showHolder(payer, null, decimals)
    throw new Stop('funds')
  }
  if (typeof transaction !== 'string') throw new Stop(answer.status < 500 ? 'changed' : 'failed')
  return fromBase64(transaction)
}
