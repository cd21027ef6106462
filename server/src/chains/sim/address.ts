import type { StoreId } from '../../ids.ts'
import type { ParsedAddress } from '../address.ts'

/**
 * Addresses of the simulated network. They begin so that nobody can take one for an address with money. A store's wallet
 * names the store, so it needs no row: `payment_owners` in the database reads the same form.
 */
export function simulatedWallet(storeId: StoreId): string {
  return `sim_${storeId}`
}

export function parseSimulatedAddress(text: string): ParsedAddress {
  if (/^sim_[a-z0-9_]{1,59}$/.test(text)) return { address: text }
  return { refusal: 'An address of the simulated network begins with sim_.', fault: 'form' }
}
