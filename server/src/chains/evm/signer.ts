import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { keccak256, serializeTransaction } from 'viem/utils'
import type { EvmNetwork, Network } from '../../networks.ts'
import type { Hex } from '../hex.ts'
import { type Ask, type Guard, SignRefusedError, unlimited } from '../signers/signing.ts'
import { findRefusal, type Unsigned } from './policy.ts'
import { recoverSigner, signDigest } from './recover.ts'

/**
 * A settler's account. It pays gas and cannot redirect money: the signed transfers fix recipient and amount. Its key is
 * in this process, or in `signer`, which is asked for every signature. Both follow the same policy, and give the same
 * bytes for the same transaction.
 */
export type Signer = {
  readonly family: 'EVM'
  readonly address: Hex
  readonly sign: (chain: On, transaction: Unsigned) => Promise<SignedTransaction>
  /** While this is true, nothing can be signed. */
  readonly isAway: () => boolean
}

/** The chain of a transaction. */
type On = { readonly network: EvmNetwork; readonly chainId: number }

type SignedTransaction = { readonly hash: Hex; readonly bytes: Hex }

/** A new key, as SETTLER_KEYS_FILE holds it. */
export function makeKey(): string {
  return generatePrivateKey()
}

/**
 * With the key in this process. `answer` serves another process: it takes the question that `openRemoteSigner` sends
 * from there.
 */
export function openSigner(privateKey: Hex, guard: Guard = unlimited) {
  const address = privateKeyToAccount(privateKey).address.toLowerCase() as Hex
  const secret = Buffer.from(privateKey.slice(2), 'hex')
  const signDigestOf = (on: On, transaction: Unsigned) => {
    const refusal = findRefusal(on.network, address, transaction, guard)
    if (refusal !== null) throw new SignRefusedError(refusal)
    return signDigest(digestOf(on, transaction), secret)
  }
  return {
    family: 'EVM',
    address,
    isAway: () => false,
    sign: async (on: On, transaction: Unsigned) => assemble(on, transaction, signDigestOf(on, transaction)),
    async answer(network: Network, asked: unknown): Promise<string> {
      const transaction = readAsked(asked)
      if (network.family !== 'EVM' || !transaction) throw new SignRefusedError('it is not a transaction')
      const { r, s, yParity } = signDigestOf({ network, chainId: chainIdOf(network) }, transaction)
      return `${r}${s.slice(2)}${yParity === 1 ? '1c' : '1b'}`
    },
  } as const satisfies Signer & { answer: unknown }
}

/**
 * With the key in another process. Its signature is checked, because a transaction that no node accepts would block its
 * nonce.
 */
export function openRemoteSigner(address: Hex, ask: Ask, isAway: () => boolean): Signer {
  return {
    family: 'EVM',
    address,
    isAway,
    async sign(on, transaction) {
      const { gas, maxFeePerGas, maxPriorityFeePerGas, ...rest } = transaction
      const amounts = {
        gas: `${gas}`,
        maxFeePerGas: `${maxFeePerGas}`,
        maxPriorityFeePerGas: `${maxPriorityFeePerGas}`,
      }
      const signature = await ask(address, on.network.caip2, { ...rest, ...amounts })
      const isHex = /^0x[0-9a-f]{128}1[bc]$/.test(signature)
      const signer = isHex && recoverSigner(digestOf(on, transaction), Buffer.from(signature.slice(2), 'hex'))
      if (!signer || signer.address !== address || signer.normalised !== signature)
        throw new SignRefusedError('the signer answered with a signature that is not this account’s')
      return assemble(on, transaction, {
        r: `0x${signature.slice(2, 66)}`,
        s: `0x${signature.slice(66, 130)}`,
        yParity: signature.endsWith('1c') ? 1 : 0,
      })
    },
  }
}

function unsignedOf({ chainId }: On, transaction: Unsigned) {
  const { to, data, nonce, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
  const fees = { gas, maxFeePerGas, maxPriorityFeePerGas }
  return { to: to as Hex, data, nonce, ...fees, chainId, type: 'eip1559', value: 0n } as const
}

function digestOf(on: On, transaction: Unsigned): Buffer {
  return Buffer.from(keccak256(serializeTransaction(unsignedOf(on, transaction))).slice(2), 'hex')
}

function assemble(
  on: On,
  transaction: Unsigned,
  signature: ReturnType<typeof signDigest>,
): SignedTransaction {
  const bytes = serializeTransaction(unsignedOf(on, transaction), signature)
  return { hash: keccak256(bytes), bytes }
}

function chainIdOf({ caip2 }: EvmNetwork): number {
  return Number.parseInt(caip2.slice('eip155:'.length), 10)
}

/** A transaction exactly as `openRemoteSigner` sends it; null if anything differs. */
function readAsked(asked: unknown): Unsigned | null {
  const { to, data, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, ...more } = (asked ?? {}) as Record<
    string,
    unknown
  >
  const isText = (text: unknown, form: RegExp): text is string => typeof text === 'string' && form.test(text)
  if (!isText(to, /^0x[0-9a-fA-F]{40}$/) || !isText(data, /^0x(?:[0-9a-f]{2})*$/)) return null
  const number = /^(0|[1-9]\d{0,38})$/
  if (!isText(gas, number) || !isText(maxFeePerGas, number) || !isText(maxPriorityFeePerGas, number))
    return null
  if (typeof nonce !== 'number' || Object.keys(more).length > 0) return null
  const fees = { maxFeePerGas: BigInt(maxFeePerGas), maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas) }
  return { to, data: data as Hex, nonce, gas: BigInt(gas), ...fees }
}
