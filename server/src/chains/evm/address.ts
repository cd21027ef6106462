import { getAddress, isAddress } from 'viem/utils'
import type { ParsedAddress } from '../address.ts'

const zeroAddress = '0x0000000000000000000000000000000000000000'

/** Checks EIP-55 if the letters are in mixed case; a single case carries no checksum and is accepted. */
export function parseEvmAddress(text: string): ParsedAddress {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text))
    return { refusal: 'An EVM address is 0x followed by 40 hexadecimal digits.', fault: 'form' }
  const digits = text.slice(2)
  const isSingleCase = digits === digits.toLowerCase() || digits === digits.toUpperCase()
  if (!isSingleCase && !isAddress(text, { strict: true })) {
    return {
      refusal: 'The checksum (EIP-55) is wrong. The address probably has a typo.',
      fault: 'checksum',
    }
  }
  const address = getAddress(`0x${digits.toLowerCase()}`)
  return address === zeroAddress
    ? { refusal: 'This is the zero address. Money sent to it is lost.', fault: 'nobody' }
    : { address }
}

/** With its checksum. */
export function showEvmAddress(stored: string): string {
  return getAddress(stored)
}
