/**
 * Every command of `farthing-admin`. usage.ts makes the help and the check of the command line from this table, and
 * main.ts runs the command.
 */
export type Command = {
  /** As it is typed. */
  readonly words: string
  /** What follows the words; in brackets what may be left out. */
  readonly subjects?: string
  /** With the name of its value, if it takes one. */
  readonly options?: Readonly<Record<`--${string}`, string>>
  readonly about: string
  /** As which database role it connects; null: as none. */
  readonly role: 'owner' | 'serve' | 'work' | 'operator' | 'audit' | null
  /** Only other commands type it. */
  readonly isInternal?: boolean
}

const keyOptions = {
  '--preset NAME': 'create or read: the usual scopes for creating checkouts, or for looking only',
  '--scopes LIST': 'what it may do, separated by commas; without this and --preset, everything',
  '--label NAME': 'what to call it in lists',
  '--addresses LIST': 'addresses or CIDR ranges it can be used from, separated by commas',
} as const

const walletOptions = {
  '--evm-wallet ADDRESS': 'the wallet that is paid on Base',
  '--solana-wallet ADDRESS': 'the wallet that is paid on Solana',
} as const

const as = {
  '--as NAME': 'who does this, for the store’s event log; default: your user name',
} as const

export const commands: readonly Command[] = [
  {
    words: 'setup',
    options: {
      '--host HOST': 'the host name of the checkout',
      '--console-host HOST': 'the host name of the console, where people sign in; default: no console',
      '--network NETWORK': 'the network to be paid on; default: BASE_SEPOLIA',
      '--nodes LIST': 'the URLs of its nodes, of two providers or more, separated by commas',
      '--name NAME': 'what your store is called; default: My shop',
      '--wallet ADDRESS': 'the wallet that your store is paid to',
      '--mail URL': 'a mail server, such as smtps://user:password@mail.example:465; default: no mails',
      '--mail-from EMAIL': 'the sender of these mails',
      '--out FOLDER': 'a folder that does not exist yet; default: farthing-setup',
    },
    about:
      'ask for what a deployment needs, check it, and write all its files into a folder; changes nothing else',
    role: null,
  },
  { words: 'serve', about: 'answer HTTP requests', role: 'serve' },
  {
    words: 'work',
    about: 'run background work: settling, following chains, expiry, events, rates',
    role: 'work',
  },
  {
    words: 'audit',
    about: 'compare each day’s payments with the chains once the day is over',
    role: 'audit',
  },
  {
    words: 'audit check',
    subjects: 'FROM [TO]',
    options: { '--network NETWORK': 'only this network; default: all that have nodes' },
    about: 'compare past days now, such as 2026-11-16, and print what differs',
    role: 'audit',
  },
  {
    words: 'audit recover',
    subjects: 'NETWORK TRANSACTION',
    about: 'have work look at a transaction that the audit misses in the books',
    role: 'operator',
  },
  {
    words: 'signer',
    about: 'hold the settlers’ keys for work, and sign what a settler may sign; listens on SIGNER_SOCKET',
    role: null,
  },
  {
    words: 'dev',
    about: 'run serve and work, with a private database, a local chain and a demo store',
    role: null,
  },
  { words: 'dev serve', about: 'the part of dev that answers HTTP', role: null, isInternal: true },
  { words: 'dev work', about: 'the part of dev that runs background work', role: null, isInternal: true },
  {
    words: 'migrate',
    about: 'bring the database schema up to date, and the rights of the database roles',
    role: 'owner',
  },
  { words: 'doctor', about: 'check the deployment; print what is wrong and what to do', role: 'operator' },
  {
    words: 'rehearse',
    subjects: 'NETWORK',
    options: {
      '--payer-key FILE': 'the key of a wallet that pays one cent; required',
      '--wallet-key FILE': 'the key of the store’s wallet, to refund the cent; default: no refund',
      '--store STORE': 'the store that is paid; default: the only one',
      '--report FILE': 'a Markdown file to write what was found into',
      '--after CHECKOUT': 'pay another cent, after the rehearsal with this checkout',
      '--yes': 'do not ask before real money moves',
      ...as,
    },
    about:
      'pay one cent through this deployment, step by step, with a check after each; a repeated run goes on where the last one stopped',
    role: 'operator',
  },

  {
    words: 'store create',
    options: {
      '--name NAME': 'what buyers see; required',
      '--test': 'a test store, which only test networks can pay',
      ...walletOptions,
      '--support-email EMAIL': 'where buyers ask for help',
      '--support-url URL': 'where buyers find help',
      ...as,
    },
    about: 'create a store and its first key',
    role: 'operator',
  },
  { words: 'store list', about: 'list the stores', role: 'operator' },
  {
    words: 'store approve',
    subjects: 'STORE',
    options: as,
    about: 'let a store that was opened by sign-up create checkouts',
    role: 'operator',
  },
  {
    words: 'store suspend',
    subjects: 'STORE',
    options: { '--reason TEXT': 'why, which its owners read; required', ...as },
    about: 'let a store create no checkouts',
    role: 'operator',
  },
  { words: 'store resume', subjects: 'STORE', options: as, about: 'lift the suspension', role: 'operator' },
  {
    words: 'store set',
    subjects: 'STORE',
    options: {
      '--wallet-changes WHO': 'key: a key changes the wallet that is paid; member: an owner confirms that',
      ...as,
    },
    about: 'change how a store’s wallet is changed',
    role: 'operator',
  },
  {
    words: 'key create',
    subjects: 'STORE',
    options: { ...keyOptions, ...as },
    about: 'create another key, which may do everything unless you say otherwise',
    role: 'operator',
  },
  { words: 'key list', subjects: 'STORE', about: 'list the store’s keys', role: 'operator' },
  {
    words: 'key rotate',
    subjects: 'KEY',
    options: { '--overlap-hours HOURS': 'how long the old key still works; default: 24', ...as },
    about: 'create a new key; the old one expires after an overlap',
    role: 'operator',
  },
  { words: 'key revoke', subjects: 'KEY', options: as, about: 'revoke a key now', role: 'operator' },
  {
    words: 'member invite',
    subjects: 'STORE',
    options: {
      '--name NAME': 'what to call them; required',
      '--role ROLE': 'owner, manager, developer or viewer; default: owner',
      '--email EMAIL': 'where to mail the link as well, if mail is set up',
      ...as,
    },
    about: 'print a link with which the store’s first owner enrols in the console',
    role: 'operator',
  },
  {
    words: 'member list',
    subjects: 'STORE',
    about: 'list the store’s members and open invitations',
    role: 'operator',
  },
  {
    words: 'member role',
    subjects: 'STORE MEMBER ROLE',
    options: as,
    about: 'give a member another role; owner only if the store has no owner',
    role: 'operator',
  },
  {
    words: 'member remove',
    subjects: 'STORE MEMBER',
    options: as,
    about: 'remove a member; with the last owner gone you can invite another',
    role: 'operator',
  },
  {
    words: 'member operator',
    subjects: 'MEMBER on|off',
    options: as,
    about: 'say whether a member runs this deployment',
    role: 'operator',
  },

  {
    words: 'settler create',
    subjects: 'NETWORK',
    options: { '--out FILE': 'the file to append it to; default: SETTLER_KEYS_FILE' },
    about: 'make a key that pays for settlements, e.g. on BASE_MAINNET, and print its address',
    role: null,
  },
  {
    words: 'settler deploy',
    subjects: 'NETWORK',
    about: 'put the batcher contract on a network, unless it is there',
    role: 'operator',
  },
  {
    words: 'settler add',
    subjects: 'NETWORK ADDRESS',
    about: 'let an account pay for settlements',
    role: 'operator',
  },
  { words: 'settler list', about: 'list the settlers and their balances', role: 'operator' },
  {
    words: 'settler drain',
    subjects: 'ADDRESS',
    options: { '--network NETWORK': 'on which network, if it settles on several' },
    about: 'give an account no new payments, and retire it when it is done',
    role: 'operator',
  },
  {
    words: 'secrets create',
    options: { '--out FILE': 'a file that does not exist yet; default: SECRETS_KEY_FILE' },
    about: 'make the key that seals webhook secrets',
    role: null,
  },
  {
    words: 'secrets rotate',
    about: 'seal all webhook secrets with the first key of SECRETS_KEY_FILE, while serve and work run',
    role: 'operator',
  },

  {
    words: 'retention export',
    options: { '--before DATE': 'a day such as 2026-08-01, in UTC; required' },
    about:
      'write the checkouts that ended before a day and are over to standard output, one line of JSON each',
    role: 'operator',
  },
  {
    words: 'erase payer',
    subjects: 'ADDRESS',
    about: 'erase a payer’s data, except what the books need',
    role: 'operator',
  },
  {
    words: 'reconcile',
    options: { '--yes': 'do not ask' },
    about: 'compare a restored database with the chains, before serve and work start',
    role: 'operator',
  },
  {
    words: 'rollups rebuild',
    options: {
      '--store STORE': 'for one store only',
      '--force': 'also where checkouts were deleted: what they brought is lost',
    },
    about: 'count what stores took again, from their event logs, while serve and work run',
    role: 'operator',
  },

  {
    words: 'directory migrate',
    about: 'bring the schema of the database that cells share, DIRECTORY_URL, up to date',
    role: null,
  },
  {
    words: 'directory adopt',
    about: 'enter this cell there, as the owner of all wallets and settlers that it uses',
    role: 'operator',
  },
  { words: 'directory list', about: 'list the cells', role: 'operator' },
  {
    words: 'directory own',
    subjects: 'FAMILY ADDRESS',
    options: { '--mode MODE': 'live or test; required' },
    about: 'make this cell the owner of a wallet that cannot sign, such as a custodial one',
    role: 'operator',
  },
  {
    words: 'directory release',
    subjects: '[ADDRESS]',
    options: {
      '--mode MODE': 'live or test: only the wallet of that mode',
      '--all': 'instead of an address: everything that this cell owns',
    },
    about: 'let other cells own a wallet or settler that this cell owns and does not use any more',
    role: 'operator',
  },
  {
    words: 'directory place',
    options: {
      '--member MEMBER': 'a member who will belong to it',
      ...walletOptions,
      '--test': 'a test store',
    },
    about: 'say which cell a new store goes to',
    role: 'operator',
  },
  { words: 'directory drain', subjects: 'CELL', about: 'give a cell no new stores', role: 'operator' },
  { words: 'directory resume', subjects: 'CELL', about: 'give it some again', role: 'operator' },
  {
    words: 'directory remove',
    subjects: 'CELL',
    options: { '--lost': 'its database never starts again' },
    about: 'remove a cell that has released all it owned',
    role: 'operator',
  },
  {
    words: 'directory maps',
    options: { '--out FOLDER': 'where the proxy reads them; required' },
    about: 'write the maps of the proxy in front of the cells',
    role: 'operator',
  },
  {
    words: 'directory restored',
    options: { '--cells LIST': 'all cells there are, separated by commas; required' },
    about: 'say that the directory was restored: it grants nothing until each cell has adopted it',
    role: 'operator',
  },
]
