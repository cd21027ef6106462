import type { FarthingClient } from '@farthing/sdk'
import { type Command, clientOf, take, UsageError } from '../command.ts'
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
        good(
          wallet.confirmationRequired ? 'Wallet requested; an owner has to confirm it' : 'Wallet registered',
        ),
        '',
        ...terminal.facts([
          ['wallet', wallet.id],
          ['family', wallet.family],
          ['address', wallet.walletAddress],
          ['kind', wallet.custodialType],
          wallet.payable
            ? ['payable', 'yes', 'green']
            : ['payable', `no: ${wallet.unpayableReason ?? 'this deployment cannot settle to it'}`, 'yellow'],
        ]),
      ])
      return undefined
    },
  },
  {
    name: 'wallet challenge',
    arguments: '<wallet>',
    summary: 'Print the message that proves a wallet is yours',
    options: {},
    notes: [
      'Sign the message with the wallet, exactly as printed, within one hour.',
      'Then run farthing wallet prove.',
    ],
    async run({ terminal, settings, positionals: [named = ''] }) {
      const client = clientOf(settings)
      const challenge = await client.wallets.challenge(await findWallet(client, named))
      terminal.show(challenge, () => [challenge.message])
      return undefined
    },
  },
  {
    name: 'wallet prove',
    arguments: '<wallet> <signature>',
    summary: 'Present the wallet’s signature of that message',
    options: {},
    async run({ terminal, settings, positionals: [named = '', signature = ''] }) {
      const client = clientOf(settings)
      const wallet = await client.wallets.prove(await findWallet(client, named), { signature })
      terminal.show(wallet, () => [good(`${wallet.walletAddress} is proven`)])
      return undefined
    },
  },
  {
    name: 'wallet shared',
    arguments: '<wallet> <yes|no>',
    summary: 'Mark a wallet as also used outside Farthing',
    options: {},
    notes: ['One wallet for Farthing alone is better.'],
    async run({ terminal, settings, positionals: [named = '', answer = ''] }) {
      if (answer !== 'yes' && answer !== 'no') throw new UsageError('Write yes or no after the wallet.')
      const client = clientOf(settings)
      const wallet = await client.wallets.update(await findWallet(client, named), {
        sharedElsewhere: answer === 'yes',
      })
      terminal.show(wallet, () => [
        good(`${wallet.walletAddress} is paid ${answer === 'yes' ? 'elsewhere too' : 'by Farthing alone'}`),
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
        { title: 'PROVEN', cell: ({ provenAt }) => (provenAt ? '✔' : '') },
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

/** The id of one of the store's wallets, named by its id or address. */
async function findWallet(client: FarthingClient, named: string): Promise<string> {
  if (named.startsWith('wal_')) return named
  for await (const { id, walletAddress } of client.wallets.list())
    if (walletAddress.toLowerCase() === named.toLowerCase()) return id
  throw new UsageError(`${named} is not one of the store’s wallets. farthing wallet list shows them.`)
}
