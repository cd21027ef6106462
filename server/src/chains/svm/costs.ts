import type { Costs } from '../plans.ts'

/** Calls of 2026-11-19, with the slots of the real cluster. */
export const svmCosts: Costs = {
  calls: {
    idle: { getEpochInfo: 259_000, getGenesisHash: 138_000, getBlockTime: 8_600 },
    awakeHour: null,
    payment: {
      getGenesisHash: 5.2,
      getAccountInfo: 3,
      getLatestBlockhash: 3,
      getSignatureStatuses: 3,
      getEpochInfo: 2,
      simulateTransaction: 2,
      getBalance: 1.2,
      getTransaction: 1,
      sendTransaction: 1,
    },
  },
  plans: [
    {
      provider: 'Helius',
      hosts: ['.helius-rpc.com'],
      unit: 'credits',
      unitsPerMonth: 1_000_000,
      costs: {
        ...{ getBlockTime: 10, getSignatureStatuses: 10, getTransaction: 10, getSignaturesForAddress: 10 },
      },
      otherwise: 1,
      source: 'helius.dev/docs/billing/credits',
      readIn: 'November 2026',
    },
  ],
}
