import { knownAssets } from './agent/assets.ts'
import { type TransferTypedData, transferTypes } from './agent/evm.ts'
import { FarthingError } from './errors.ts'
import type { PreparedRefund } from './wire.ts'

/**
 * A refund leaves the store's own wallet, so an attacker who has taken over the server must not be able to choose where
 * it goes, or how much. Before anything is signed, every field of what the server asks for is compared with what the caller
 * wants and with what this package knows about the token, and the wallet signs a copy that is built here.
 */

/** What the caller wants to give back, and to whom. */
export type RefundTerms = {
  /** In the asset's smallest unit. */
  readonly amount: string
  readonly recipient: string
  /** CAIP-2 identifier of the network that it must be on. By default, the one that the server names. */
  readonly network?: string
}

/** The server asked to sign something other than the caller wants. Nothing was signed. */
export class RefundMismatch extends FarthingError {
  /** Which field differs: `message.to`, for example. */
  readonly field: string
  readonly expected: string
  readonly offered: string

  constructor(field: string, expected: string, offered: string) {
    super({
      code: 'refund_mismatch',
      detail: `The server asks to sign ${field} = ${offered}, but it must be ${expected}. Nothing was signed.`,
    })
    this.field = field
    this.expected = expected
    this.offered = offered
  }
}

/** Contract wallets get a week, because their owners sign one by one; the rest is for clocks that differ. */
const windowSecondsMax = 7 * 86_400 + 600
const domainFields = ['name', 'version', 'chainId', 'verifyingContract']
const domainType = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]
/** "fthr" in ASCII, and 28 bytes that depend on the payment and the number of its refund. */
const refundNonce = /^0x66746872[0-9a-f]{56}$/i

/** Throws if the refund that the server describes is another one than the caller's. */
export function checkRefund(
  { refund }: Pick<PreparedRefund, 'refund'>,
  refundId: string,
  { amount, recipient, network }: RefundTerms,
): void {
  need('refund.id', refundId, refund.id)
  need('refund.amount', amount, refund.amount)
  needAddress('refund.recipient', recipient, refund.recipient)
  if (network !== undefined) need('refund.network', network, refund.network)
}

/** What the wallet may sign. Throws a `RefundMismatch` if the server asks for anything else. */
export function checkTypedData(
  { refund, typedData, expiresAt }: Extract<PreparedRefund, { typedData: unknown }>,
  from: string,
  { amount, recipient }: RefundTerms,
  now: number,
): TransferTypedData {
  const asset = knownAssets.find(
    ({ network, address, domain }) => domain && network === refund.network && isSame(address, refund.asset),
  )
  if (!asset?.domain)
    throw new RefundMismatch(
      'refund.asset',
      'a token that this package knows',
      `${refund.asset} on ${refund.network}`,
    )
  const offered = fieldsOf('typedData', typedData, ['domain', 'types', 'primaryType', 'message'])
  need('primaryType', 'TransferWithAuthorization', offered.primaryType)
  checkTypes(offered.types)

  const domain = fieldsOf('domain', offered.domain, domainFields)
  const chainId = Number.parseInt(asset.network.replace('eip155:', ''), 10)
  need('domain.name', asset.domain.name, domain.name)
  need('domain.version', asset.domain.version, domain.version)
  need('domain.chainId', String(chainId), domain.chainId)
  needAddress('domain.verifyingContract', asset.address, domain.verifyingContract)

  const message = fieldsOf(
    'message',
    offered.message,
    transferTypes.TransferWithAuthorization.map(({ name }) => name),
  )
  needAddress('message.from', from, message.from)
  needAddress('message.from', from, refund.from)
  needAddress('message.to', recipient, message.to)
  need('message.value', amount, message.value)
  need('message.validAfter', '0', message.validAfter)
  const validBefore = Math.floor(Date.parse(expiresAt) / 1_000)
  need('message.validBefore', String(validBefore), message.validBefore)
  const seconds = Math.floor(now / 1_000)
  if (!(validBefore > seconds && validBefore <= seconds + windowSecondsMax))
    throw new RefundMismatch('message.validBefore', 'a time within the next seven days', expiresAt)
  const nonce = String(message.nonce)
  if (!refundNonce.test(nonce)) throw new RefundMismatch('message.nonce', 'the nonce of a refund', nonce)

  return {
    domain: { ...asset.domain, chainId, verifyingContract: asset.address as `0x${string}` },
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: from as `0x${string}`,
      to: recipient as `0x${string}`,
      value: BigInt(amount),
      validAfter: 0n,
      validBefore: BigInt(validBefore),
      nonce: nonce as `0x${string}`,
    },
  }
}

/** Some wallets want the domain's own type and some do not. No other type is allowed. */
function checkTypes(types: unknown): void {
  const { EIP712Domain = domainType, ...rest } = (types ?? {}) as Record<string, unknown>
  need('types.EIP712Domain', JSON.stringify(domainType), JSON.stringify(EIP712Domain))
  need('types', JSON.stringify(transferTypes), JSON.stringify(rest))
}

/** An object's values, if it has exactly these fields. */
function fieldsOf(
  about: string,
  value: unknown,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const fields = typeof value === 'object' && value !== null ? Object.keys(value) : []
  need(`fields of ${about}`, [...names].sort().join(', '), fields.sort().join(', '))
  return value as Readonly<Record<string, unknown>>
}

function need(field: string, expected: string, offered: unknown): void {
  const isText = typeof offered === 'string' || typeof offered === 'number'
  if (!isText || String(offered) !== expected) throw new RefundMismatch(field, expected, String(offered))
}

function needAddress(field: string, expected: string, offered: unknown): void {
  if (typeof offered !== 'string' || !isSame(expected, offered))
    throw new RefundMismatch(field, expected, String(offered))
}

/** Hexadecimal addresses in any case, others exactly. */
function isSame(one: string, other: string): boolean {
  return one === other || (/^0x[0-9a-fA-F]{40}$/.test(one) && one.toLowerCase() === other.toLowerCase())
}
