import { type Command, clientOf, take } from '../command.ts'
import { good } from '../terminal.ts'

export const walletCommands: readonly Command[] = [
  {
    name: 'wallet add',
    arguments: '<address>',
    summary: 'Register a wallet; new checkouts pay to it',
    options: {
      custodial: { type: 'boolean', about: 'someone else, such as an exchange, holds its keys' },
    },
    async run({ terminal, settings, positionals, values }) {
      const [walletAddress = ''] = positionals
      const wallet = await clientOf(settings).wallets.register({
        family: walletAddress.startsWith('0x') ? 'EVM' : 'SOLANA',
        walletAddress,
        custodialType: values.custodial ? 'CUSTODIAL' : 'NON_CUSTODIAL',
      })
      terminal.show(wallet, () => [
        good('Wallet registered'),
        '',
        ...terminal.facts([
          ['wallet', wallet.id],
          ['family', wallet.family],
          ['address', wallet.walletAddress],
          ['kind', wallet.custodialType],
          wallet.payable
            ? ['payable', 'yes', 'green']
            : ['payable', 'no: this deployment cannot settle to it', 'yellow'],
        ]),
      ])
      return undefined
    },
  },
  {
    name: 'wallet list',
    arguments: '',
    summary: 'List the store’s wallets',
    options: {},
    async run({ terminal, settings }) {
      const wallets = await take(clientOf(settings).wallets.list(), Number.POSITIVE_INFINITY)
      terminal.showAll(wallets, 'No wallets. Register one with farthing wallet add <address>.', [
        { title: 'FAMILY', cell: ({ family }) => family },
        { title: 'ADDRESS', cell: ({ walletAddress }) => walletAddress },
        {
          title: 'NEW CHECKOUTS',
          cell: ({ current, payable }) => (!current ? '' : payable ? '✔ paid here' : 'not yet'),
          style: ({ payable }) => (payable ? 'green' : 'dim'),
        },
      ])
      return undefined
    },
  },
]
