import { type EvmOption, serverSeconds, terms } from '../terms.ts'

/** The EIP-3009 authorization that the buyer signs. Integers are decimal strings, as wallets expect. */
type Authorization = {
  readonly from: string
  readonly to: string
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: string
}

export async function makeAuthorization({ accepted }: EvmOption, from: string): Promise<Authorization> {
  return {
    from,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: '0',
    validBefore: String(serverSeconds() + accepted.maxTimeoutSeconds),
    nonce: await makeNonce(terms()?.id ?? ''),
  }
}

/** A nonce that only this checkout can claim: "fthg", 12 random bytes, 16 bytes of SHA-256(id, those 12 bytes). */
async function makeNonce(id: string): Promise<string> {
  const random = crypto.getRandomValues(new Uint8Array(12))
  const proof = await crypto.subtle.digest(
    'SHA-256',
    new Uint8Array([...new TextEncoder().encode(id), ...random]),
  )
  return `0x66746867${hex(random)}${hex(new Uint8Array(proof, 0, 16))}`
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function typedData({ accepted, chainId }: EvmOption, message: Authorization): string {
  const { name, version } = accepted.extra
  const field = (type: string) => (name: string) => ({ name, type })
  return JSON.stringify({
    primaryType: 'TransferWithAuthorization',
    types: {
      EIP712Domain: [
        ...['name', 'version'].map(field('string')),
        field('uint256')('chainId'),
        field('address')('verifyingContract'),
      ],
      TransferWithAuthorization: [
        ...['from', 'to'].map(field('address')),
        ...['value', 'validAfter', 'validBefore'].map(field('uint256')),
        field('bytes32')('nonce'),
      ],
    },
    domain: { name, version, chainId, verifyingContract: accepted.asset },
    message,
  })
}
