import { type Address, type Hex, keccak256, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { batchCalldata, batcher, type Packed } from '../../../../src/chains/evm/batcher.ts'
import { type Authorization, digest } from '../../../../src/chains/evm/eip3009.ts'
import { signDigest } from '../../../../src/chains/evm/recover.ts'
import { callGas } from '../../../../src/payments/evm/choose.ts'
import type { Domain } from '../../../support/chain/evm.ts'
import type { Signed } from '../../../support/chain/evm-payment.ts'

/** A signed payment in the form that the batcher's calldata is made from. */
export function toPacked({ authorization, signature }: Signed, asset: Address): Packed {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return {
    asset: lower(asset),
    authorization: {
      from: lower(from),
      to: lower(to),
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce: lower(nonce),
    },
    signature: lower(signature),
    marker: null,
  }
}

/** One transaction that settles these payments through the batcher. */
export function toBatch(payments: readonly Packed[], gas: bigint): { to: Address; data: Hex; gas: bigint } {
  return { to: batcher, data: batchCalldata(payments, callGas), gas }
}

/** Payments that are the same in every run, because calldata costs gas by its bytes. */
export function makeFixedPayments(domain: Domain, to: Address, count: number): Packed[] {
  const verifyingContract = lower(domain.verifyingContract)
  return Array.from({ length: count }, (_, i) => {
    const key = keccak256(toHex(`payer ${i}`))
    const authorization: Authorization = {
      from: lower(privateKeyToAccount(key).address),
      to: lower(to),
      value: 12_340_000n,
      validAfter: 1_700_000_000n,
      validBefore: 4_000_000_000n,
      nonce: keccak256(toHex(`nonce ${i}`)),
    }
    const hash = digest({ ...domain, verifyingContract }, authorization)
    const { r, s, yParity } = signDigest(hash, Buffer.from(key.slice(2), 'hex'))
    return {
      asset: verifyingContract,
      authorization,
      signature: `${r}${s.slice(2)}${yParity === 0 ? '1b' : '1c'}` as Hex,
      marker: keccak256(toHex(`marker ${i}`)).slice(0, 34) as Hex,
    }
  })
}

function lower<Text extends string>(text: Text): Hex {
  return text.toLowerCase() as Hex
}
