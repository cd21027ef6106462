import { makeAuthorization, paymentHeader, typedData } from './authorization.ts'
import { settle } from './settle.ts'
import { find, show, type Trouble } from './show.ts'
import { type Option, type Terms, terms } from './terms.ts'
import type { Provider, Wallet } from './wallets.ts'

/** A reason to stop that the page has words for. */
class Stop extends Error {
  readonly trouble: Trouble
  constructor(trouble: Trouble) {
    super(trouble)
    this.trouble = trouble
  }
}

let turn = 0
let letGo = () => {}

/** Forgets the wallet that is being asked: what it may still answer is not used. */
export function startOver(): void {
  turn++
  letGo()
  show(null)
}

/** Connect, be on the right chain, sign, hand in. One tab at a time asks for a signature. */
export async function pay(wallet: Wallet): Promise<void> {
  const mine = ++turn
  const checkIsMine = () => {
    if (mine !== turn) throw new Stop('failed')
  }
  try {
    await alone(async () => {
      const header = await sign(wallet.provider, checkIsMine)
      checkIsMine()
      // Somebody else was faster: what was signed here is not needed, and nobody else has seen it.
      if (terms()?.status !== 'OPEN') throw new Stop('changed')
      await settle(header)
    })
  } catch (error) {
    if (mine === turn) show(error instanceof Stop ? error.trouble : troubleOf(error))
  }
}

async function sign(provider: Provider, checkIsMine: () => void): Promise<string> {
  show('connecting')
  const [account] = (await provider.request({ method: 'eth_requestAccounts' })) as string[]
  checkIsMine()
  const now = terms()
  if (!account || now?.status !== 'OPEN') throw new Stop('changed')
  const chainId = await readChainId(provider)
  const option = now.options.find((each) => each.chainId === chainId) ?? now.options[0]
  if (!option || !isShown(now, option)) throw new Stop('changed')
  if (option.chainId !== chainId) {
    show('switching')
    await moveTo(provider, option)
    checkIsMine()
  }
  if (await isTooPoor(provider, option, account)) throw new Stop('funds')
  checkIsMine()
  show('signing')
  const authorization = await makeAuthorization(now, option, account)
  const signature = await provider.request({
    method: 'eth_signTypedData_v4',
    params: [account, typedData(option, authorization)],
  })
  if (typeof signature !== 'string' || !/^0x([0-9a-f]{2})+$/i.test(signature)) throw new Stop('smart')
  return paymentHeader(option, authorization, signature)
}

/** What is signed is what the buyer sees: address and amount are read back from the text on the page. */
function isShown({ options }: Terms, { accepted, decimals, chain }: Option): boolean {
  const i = options.findIndex((each) => each.accepted === accepted)
  const text = (name: string) => find(`[data-${name}="${i}"]`)?.textContent ?? ''
  const [whole = '', fraction = ''] = text('amount').split('.')
  return (
    whole + fraction.padEnd(decimals, '0') === accepted.amount.padStart(decimals + 1, '0') &&
    text('address').replace(/\s/g, '') === accepted.payTo &&
    text('network') === chain.chainName
  )
}

async function readChainId(provider: Provider): Promise<number> {
  return Number.parseInt(String(await provider.request({ method: 'eth_chainId' })), 16)
}

/** A wallet that cannot add a chain may have it already, and one that added it may not have moved there. */
async function moveTo(provider: Provider, { chainId, chain }: Option): Promise<void> {
  const move = { method: 'wallet_switchEthereumChain', params: [{ chainId: chain.chainId }] }
  const add = { method: 'wallet_addEthereumChain', params: [chain] }
  for (const call of [move, add, move]) {
    try {
      await provider.request(call)
    } catch (error) {
      if (troubleOf(error) !== 'failed') throw error
    }
    if ((await readChainId(provider)) === chainId) return
  }
  throw new Stop('chain')
}

/** Spares the buyer a signature that could not be used. A wallet that does not answer is asked to sign all the same. */
async function isTooPoor(provider: Provider, { accepted }: Option, account: string): Promise<boolean> {
  const data = `0x70a08231${account.slice(2).toLowerCase().padStart(64, '0')}`
  const call = { method: 'eth_call', params: [{ to: accepted.asset, data }, 'latest'] }
  try {
    return BigInt(String(await provider.request(call))) < BigInt(accepted.amount)
  } catch {
    return false
  }
}

/** Codes of EIP-1193 and EIP-1474; some wallets wrap them. */
function troubleOf(error: unknown): Trouble {
  const { code, data } = (error ?? {}) as { code?: unknown; data?: { originalError?: { code?: unknown } } }
  switch (data?.originalError?.code ?? code) {
    case 4001:
    case 4100:
      return 'rejected'
    case -32002:
      return 'pending'
    case 4200:
    case -32601:
      return 'smart'
    case 4900:
    case 4901:
      return 'chain'
    default:
      return 'failed'
  }
}

async function alone(work: () => Promise<void>): Promise<void> {
  if (!navigator.locks) return await work()
  await navigator.locks.request(`farthing ${terms()?.id}`, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new Stop('tab')
    // A wallet that never answers must not keep the lock for ever.
    const isLeft = new Promise<void>((resolve) => {
      letGo = resolve
    })
    await Promise.race([work(), isLeft])
  })
}
