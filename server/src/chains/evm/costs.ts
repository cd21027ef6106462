import type { Costs } from '../plans.ts'

const readIn = 'November 2026'

/** Calls of 2026-11-19, with blocks of 200 ms. */
export const evmCosts: Costs = {
  calls: {
    idle: {
      eth_getBlockByNumber: 181_000,
      eth_getLogs: 86_000,
      eth_chainId: 26_000,
      eth_call: 8_600,
      eth_getBalance: 4_300,
      eth_getTransactionCount: 4_300,
    },
    awakeHour: {
      eth_getBlockByNumber: 4_680,
      eth_getLogs: 1_860,
      eth_chainId: 1_080,
      eth_call: 600,
      eth_getBalance: 300,
      eth_getTransactionCount: 240,
    },
    payment: {
      eth_chainId: 7.2,
      eth_call: 5.1,
      eth_getBlockByNumber: 3.3,
      eth_getLogs: 3.1,
      eth_getTransactionReceipt: 1.5,
      eth_getTransactionCount: 1,
      eth_sendRawTransaction: 1,
      eth_getBalance: 0.1,
    },
  },
  plans: [
    {
      provider: 'Alchemy',
      hosts: ['.alchemy.com'],
      unit: 'compute units',
      unitsPerMonth: 30_000_000,
      costs: {
        ...{ eth_chainId: 0, eth_blockNumber: 10, eth_call: 26, eth_getLogs: 60, eth_sendRawTransaction: 40 },
      },
      otherwise: 20,
      source: 'alchemy.com/docs/reference/compute-unit-costs',
      readIn,
    },
    {
      provider: 'QuickNode',
      hosts: ['.quiknode.pro'],
      unit: 'credits',
      unitsPerMonth: 10_000_000,
      costs: {},
      otherwise: 20,
      source: 'quicknode.com/pricing',
      readIn,
    },
    {
      provider: 'Infura',
      hosts: ['.infura.io'],
      unit: 'credits',
      // The plan has 3,000,000 a day.
      unitsPerMonth: 90_000_000,
      costs: { eth_chainId: 5, eth_getLogs: 255 },
      otherwise: 80,
      source: 'docs.metamask.io/services/get-started/pricing',
      readIn,
    },
    {
      provider: 'CDP',
      hosts: ['.developer.coinbase.com'],
      unit: 'billing units',
      unitsPerMonth: 10_000_000,
      costs: { eth_getLogs: 40 },
      otherwise: 30,
      source: 'docs.cdp.coinbase.com/data/node/pricing',
      readIn,
    },
  ],
}
