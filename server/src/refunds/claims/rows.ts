import type { Claim } from './claim.ts'

export type ClaimJson = {
  expiresAt: string
  isExpired: boolean
  address: string | null
  code: string | null
  browserHash: string | null
  isConfirmed: boolean
}

/** SQL: a row of `refund_claims` as JSON, for `toClaim`. */
export function claimJson(alias: string): string {
  return `json_build_object('expiresAt', ${alias}.expires_at, 'isExpired', ${alias}.expires_at <= clock(),
    'address', ${alias}.address, 'code', ${alias}.code, 'browserHash', encode(${alias}.browser_hash, 'hex'),
    'isConfirmed', ${alias}.confirmed_at is not null)`
}

export function toClaim({ expiresAt, isExpired, address, code, browserHash, isConfirmed }: ClaimJson): Claim {
  const isNamed = address !== null && code !== null && browserHash !== null
  return {
    expiresAt: new Date(expiresAt),
    isExpired,
    named: isNamed ? { address, code, browserHash: Buffer.from(browserHash, 'hex') } : null,
    isConfirmed,
  }
}
