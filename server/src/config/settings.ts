import { firstCell } from '../ids.ts'
import { findNodeMistake, type NodeNetwork, networks, nodeNetworks } from '../networks.ts'
import {
  anyText,
  databaseUrl,
  integer,
  knownNetworks,
  list,
  mailAddress,
  mailOrPage,
  mailServer,
  type Node,
  nativeAmount,
  networkRanges,
  nodeList,
  oneOf,
  optional,
  passkeyOrigin,
  rateList,
  type Setting,
  solAmount,
  webUrl,
  zeroOr,
} from './parse.ts'

/**
 * Every setting as data: its name, meaning, default, and how its text becomes a value. `npm run generate` writes
 * `.env.example` and the table in docs/reference.md from here. `read.ts` reads them from the environment.
 */
export type Config = SigningLimits & {
  readonly databaseUrl: string
  readonly host: string
  readonly port: number
  readonly operationsHost: string
  readonly operationsPort: number
  readonly baseUrl: string
  readonly checkoutPageUrl: string
  /** Empty: the console is off. */
  readonly consoleUrl: string
  readonly consolePort: number
  /** Empty: the console connects as serve does. */
  readonly consoleDatabaseUrl: string
  readonly oidcFile: string
  /** Empty: the sign-in screen names no contact. */
  readonly operatorContact: string
  /** Whether strangers may open stores: not at all, when an operator approves them, or when they prove a wallet. */
  readonly signUp: 'closed' | 'approval' | 'open'
  readonly signUpsPerBlock: number
  readonly signUpsPerDay: number
  readonly unprovenCheckoutsPerHour: number
  /** In wei. Null: not limited more than other stores. */
  readonly unprovenGasPerDay: bigint | null
  readonly cell: string
  readonly directoryUrl: string
  readonly networks: readonly string[]
  readonly trustedProxies: readonly string[]
  readonly keyRequestsPerSecond: number
  readonly addressRequestsPerSecond: number
  readonly paymentsAtOnce: number
  readonly liveConnectionsMax: number
  readonly liveConnectionsPerAddress: number
  readonly bodyLimitBytes: number
  readonly databaseConnections: number
  readonly migrateOnStart: boolean
  readonly migrationStatementSeconds: number
  readonly drainSeconds: number
  readonly logLevel: string
  readonly ecbRatesUrl: string
  readonly exchangeRatesUrl: string
  readonly fixedRates: ReadonlyMap<string, string>
  /** The nodes of each network, by its id; empty if none are set. */
  readonly nodes: Readonly<Record<string, readonly Node[]>>
  /** Other nodes for the audit, by the network's id; empty: it asks those of `nodes`. */
  readonly auditNodes: Readonly<Record<string, readonly Node[]>>
  readonly singleNodeUpTo: number
  /** In wei. Null: not limited. */
  readonly storeGasPerDay: bigint | null
  readonly solanaTokenAccountsPerDay: number
  readonly settlerKeysFile: string
  readonly signerSocket: string
  readonly signerSocketMode: number
  readonly receiptKeysFile: string
  readonly secretsKeyFile: string
  /** Empty: no mails are written. */
  readonly smtpUrl: string
  readonly mailFrom: string
  readonly webhookPrivateNetworks: readonly string[]
  /** 0: nothing is deleted. */
  readonly retentionDays: number
  readonly crashAt: string
}

/** The most that settlers' keys may sign. */
export type SigningLimits = {
  readonly gasPerTransaction: bigint
  /** In wei. Null: not limited. */
  readonly etherPerTransaction: bigint | null
  readonly etherPerDay: bigint | null
  /** In lamports. Null: not limited. */
  readonly solPerDay: bigint | null
}

/** All settings whose names do not depend on a network. */
export type FixedConfig = Omit<Config, 'nodes' | 'auditNodes'>

export const settings: { readonly [Key in keyof FixedConfig]: Setting<FixedConfig[Key]> } = {
  databaseUrl: {
    name: 'DATABASE_URL',
    about:
      'PostgreSQL 15 or later, for example postgres://farthing:secret@db.internal:5432/farthing. With ?sslmode=verify-full&sslrootcert=FILE the server must prove that it is that host.',
    parse: databaseUrl,
  },
  host: { name: 'HOST', about: 'The address that serve listens on.', fallback: '127.0.0.1', parse: anyText },
  port: {
    name: 'PORT',
    about: 'The port that serve listens on; 0 picks a free one.',
    fallback: '8402',
    parse: integer(0, 65_535),
  },
  operationsHost: {
    name: 'OPERATIONS_HOST',
    about:
      'The address that health checks and metrics (/livez, /readyz, /metrics) are served on. Keep it private.',
    fallback: '127.0.0.1',
    parse: anyText,
  },
  operationsPort: {
    name: 'OPERATIONS_PORT',
    about:
      'The port for health checks and metrics; 0 picks a free one. Two processes on one machine need two ports.',
    fallback: '9402',
    parse: integer(0, 65_535),
  },
  baseUrl: {
    name: 'BASE_URL',
    about:
      'The public URL of the API, without a trailing slash. Every URL that Farthing gives out starts with it.',
    parse: webUrl,
  },
  checkoutPageUrl: {
    name: 'CHECKOUT_PAGE_URL',
    about:
      'The public URL of the payment pages: checkoutUrl is this, a slash and the id. Its path must reach serve unchanged. Default: BASE_URL/pay.',
    fallback: (environment) => `${environment.BASE_URL ?? 'https://invalid'}/pay`,
    parse: webUrl,
  },
  consoleUrl: {
    name: 'CONSOLE_URL',
    about:
      'The public URL of the console, where stores’ members sign in. Its host must be neither that of BASE_URL nor that of CHECKOUT_PAGE_URL; members’ passkeys belong to this host, so changing it means that all of them enrol again. Empty: there is no console.',
    fallback: '',
    parse: optional(passkeyOrigin),
  },
  consolePort: {
    name: 'CONSOLE_PORT',
    about: 'The port that serve listens on for the console; 0 picks a free one. Used only with CONSOLE_URL.',
    fallback: '8403',
    parse: integer(0, 65_535),
  },
  consoleDatabaseUrl: {
    name: 'CONSOLE_DATABASE_URL',
    about:
      'The same database as DATABASE_URL, as the console’s own role (docs/roles.md). Empty: the console connects as serve does, with DATABASE_URL.',
    fallback: '',
    parse: optional(databaseUrl),
  },
  oidcFile: {
    name: 'OIDC_FILE',
    about:
      'A JSON file with issuer, clientId and clientSecret of an OpenID provider that members may also sign in through. Only serve reads it. Empty: passkeys only.',
    fallback: '',
    parse: anyText,
  },
  operatorContact: {
    name: 'OPERATOR_CONTACT',
    about:
      'Who helps an owner who has lost every passkey and has no other owner and no recovery code: an e-mail address, or the URL of a page. The sign-in screen names it. Empty: it says to ask the operator.',
    fallback: '',
    parse: optional(mailOrPage),
  },
  signUp: {
    name: 'SIGN_UP',
    about:
      'Whether strangers may open stores at CONSOLE_URL/sign-up. closed: they may not. approval: they get a test store at once, and a live one that creates checkouts when an operator has approved it. open: the live one creates checkouts once it has proven its wallet.',
    fallback: 'closed',
    parse: oneOf('closed', 'approval', 'open'),
  },
  signUpsPerBlock: {
    name: 'SIGN_UPS_PER_BLOCK',
    about:
      'How many may sign up per day (UTC) from one block of addresses: an IPv4 /24 or an IPv6 /48, which is what one customer of a provider can have.',
    fallback: '5',
    parse: integer(1, 1_000_000),
  },
  signUpsPerDay: {
    name: 'SIGN_UPS_PER_DAY',
    about:
      'How many may sign up per day (UTC) in all: few enough for an operator to review, and a limit for an attacker with many addresses.',
    fallback: '100',
    parse: integer(1, 1_000_000),
  },
  unprovenCheckoutsPerHour: {
    name: 'UNPROVEN_CHECKOUTS_PER_HOUR',
    about:
      'Checkouts per hour that a store opened by sign-up may create until it has proven a wallet: enough to try everything, too few to fill the database.',
    fallback: '60',
    parse: integer(1, 1_000_000),
  },
  unprovenGasPerDay: {
    name: 'UNPROVEN_GAS_PER_DAY',
    about:
      'The most that settlements for such a store may cost per day, in ETH, on each network whose fees are paid in ether. It applies if it is less than STORE_GAS_PER_DAY. Empty: the same as for every store.',
    fallback: '0.002',
    parse: nativeAmount,
  },
  cell: {
    name: 'CELL',
    about:
      'Two characters from 0-9 and a-z that appear in every id and key this deployment creates. The first migration stores it in the database, and it can never be changed.',
    fallback: firstCell,
    parse: (text) =>
      /^[0-9a-z]{2}$/.test(text) ? { value: text } : { mistake: 'must be two characters from 0-9 and a-z' },
  },
  directoryUrl: {
    name: 'DIRECTORY_URL',
    about:
      'The PostgreSQL database that several cells share, which says which cell owns a wallet or settler (docs/cells.md). Empty: this deployment is the only cell.',
    fallback: '',
    parse: optional(databaseUrl),
  },
  networks: {
    name: 'NETWORKS',
    about: `The networks that payments are accepted on, any of: ${networks.map(({ id }) => id).join(', ')}.`,
    fallback: 'BASE_MAINNET,BASE_SEPOLIA',
    parse: knownNetworks,
  },
  trustedProxies: {
    name: 'TRUSTED_PROXIES',
    about: 'Addresses or CIDR ranges of proxies whose X-Forwarded-For header is trusted. Empty: none.',
    fallback: '',
    parse: list,
  },
  keyRequestsPerSecond: {
    name: 'KEY_REQUESTS_PER_SECOND',
    about: 'Requests per second that one API key may make to one process.',
    fallback: '100',
    parse: integer(1, 1_000_000),
  },
  addressRequestsPerSecond: {
    name: 'ADDRESS_REQUESTS_PER_SECOND',
    about:
      'Requests per second without a valid key that one address (IPv6: one /64) may make to one process.',
    fallback: '20',
    parse: integer(1, 1_000_000),
  },
  paymentsAtOnce: {
    name: 'PAYMENTS_AT_ONCE',
    about:
      'Payments that one process checks, claims and waits for at a time. Payers beyond that are told to come back in a few seconds.',
    fallback: '2000',
    parse: integer(1, 100_000),
  },
  liveConnectionsMax: {
    name: 'LIVE_CONNECTIONS_MAX',
    about:
      'Open payment pages that one process updates over a live connection. Pages beyond that poll every few seconds.',
    fallback: '8000',
    parse: integer(0, 1_000_000),
  },
  liveConnectionsPerAddress: {
    name: 'LIVE_CONNECTIONS_PER_ADDRESS',
    about: 'How many of those live connections one address (IPv6: one /64) may hold.',
    fallback: '50',
    parse: integer(0, 1_000_000),
  },
  bodyLimitBytes: {
    name: 'BODY_LIMIT_BYTES',
    about: 'The largest request body, in bytes: 1,024 to 1,048,576.',
    fallback: '65536',
    parse: integer(1024, 1_048_576),
  },
  databaseConnections: {
    name: 'DATABASE_CONNECTIONS',
    about:
      'Database connections per process, 4 to 200: half are pipelined, half are for transactions. More than 16 made a 2-core server slower.',
    fallback: '16',
    parse: integer(4, 200),
  },
  migrateOnStart: {
    name: 'MIGRATE_ON_START',
    about:
      'Whether serve and work migrate the schema when they start, if their database role may. With false they only check it.',
    fallback: 'true',
    parse: (text) =>
      text === 'true' || text === 'false' ? { value: text === 'true' } : { mistake: 'must be true or false' },
  },
  migrationStatementSeconds: {
    name: 'MIGRATION_STATEMENT_SECONDS',
    about:
      'How long one statement of a migration may run, 1 to 86,400 seconds. Payments may wait for it, so raise it only for a migration that needs it.',
    fallback: '30',
    parse: integer(1, 86_400),
  },
  drainSeconds: {
    name: 'DRAIN_SECONDS',
    about:
      'How long /readyz answers 503 before serve stops listening, 0 to 60 seconds, so that a load balancer stops sending requests first.',
    fallback: '0',
    parse: integer(0, 60),
  },
  retentionDays: {
    name: 'RETENTION_DAYS',
    about:
      'The days without any change after which work deletes an ended checkout with its payments and events: 90 to 36,500. 0: never. Most countries require books to be kept for years: ask before you set it.',
    fallback: '0',
    parse: zeroOr(90, 36_500),
  },
  logLevel: {
    name: 'LOG_LEVEL',
    about: 'debug, info, warn, error or silent.',
    fallback: 'info',
    parse: (text) =>
      ['debug', 'info', 'warn', 'error', 'silent'].includes(text)
        ? { value: text }
        : { mistake: 'must be debug, info, warn, error or silent' },
  },
  ecbRatesUrl: {
    name: 'ECB_RATES_URL',
    about: 'The European Central Bank’s daily reference rates (XML). Empty: not used.',
    fallback: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml',
    parse: optional(webUrl),
  },
  exchangeRatesUrl: {
    name: 'EXCHANGE_RATES_URL',
    about:
      'Exchange rates of the US dollar, in the format of Coinbase’s exchange-rates endpoint (JSON). Empty: not used.',
    fallback: 'https://api.coinbase.com/v2/exchange-rates?currency=USD',
    parse: optional(webUrl),
  },
  fixedRates: {
    name: 'FIXED_RATES',
    about:
      'For development: fixed rates in units per US dollar, such as EUR=0.86,JPY=155. They take precedence over every source. Empty: none.',
    fallback: '',
    parse: rateList,
  },
  singleNodeUpTo: {
    name: 'SINGLE_NODE_UP_TO',
    about:
      'The total of payments per network, in US dollars, that may complete checkouts while only one provider has reported them. Payments beyond it wait for a second provider.',
    fallback: '100',
    parse: integer(0, 1_000_000),
  },
  storeGasPerDay: {
    name: 'STORE_GAS_PER_DAY',
    about:
      'The most that settlements for one store may cost per day (UTC), in ETH, on each network whose fees are paid in ether. Failed ones count too. Beyond it the store’s payments get 503 until the next day. Empty: no limit.',
    fallback: '0.05',
    parse: nativeAmount,
  },
  solanaTokenAccountsPerDay: {
    name: 'SOLANA_TOKEN_ACCOUNTS_PER_DAY',
    about:
      'How many token accounts settlers may create for stores’ Solana wallets per day, at about 0.002 SOL each. With 0, stores create their own.',
    fallback: '0',
    parse: integer(0, 10_000),
  },
  settlerKeysFile: {
    name: 'SETTLER_KEYS_FILE',
    about:
      'The file with the private keys that pay for settlement, one per line: 0x and 64 hexadecimal digits, or the 64 numbers of a Solana key file in brackets. Only signer reads it or, without one, work; serve needs none of them.',
    fallback: '',
    parse: anyText,
  },
  signerSocket: {
    name: 'SIGNER_SOCKET',
    about:
      'The Unix socket of signer, the process that alone reads SETTLER_KEYS_FILE and signs for work. Empty: work reads the keys itself.',
    fallback: '',
    parse: anyText,
  },
  signerSocketMode: {
    name: 'SIGNER_SOCKET_MODE',
    about:
      'Who may connect to signer. 600: only its own user. 660: its group too, which must then have no member except work.',
    fallback: '600',
    parse: (text) =>
      text === '600' || text === '660'
        ? { value: Number.parseInt(text, 8) }
        : { mistake: 'must be 600 or 660' },
  },
  gasPerTransaction: {
    name: 'SETTLER_GAS_PER_TRANSACTION',
    about: 'The most gas that a settler’s key signs in one transaction.',
    fallback: '16777216',
    parse: (text) => {
      const parsed = integer(200_000, 30_000_000)(text)
      return parsed.value === undefined ? { mistake: parsed.mistake } : { value: BigInt(parsed.value) }
    },
  },
  etherPerTransaction: {
    name: 'SETTLER_ETH_PER_TRANSACTION',
    about:
      'The most that one transaction of a settler may cost on a live network, in ETH. Empty: only the network’s limits apply.',
    fallback: '0.1',
    parse: nativeAmount,
  },
  etherPerDay: {
    name: 'SETTLER_ETH_PER_DAY',
    about:
      'The most that a settler’s key may spend per day (UTC) on each live network, in ETH. Each transaction counts with the most that it can cost, which is about five times its usual cost. Beyond it payments get 503 until the next day. Empty: no limit.',
    fallback: '0.25',
    parse: nativeAmount,
  },
  solPerDay: {
    name: 'SETTLER_SOL_PER_DAY',
    about: 'The same on live Solana networks, in SOL.',
    fallback: '1',
    parse: solAmount,
  },
  receiptKeysFile: {
    name: 'RECEIPT_KEYS_FILE',
    about:
      'The file with the Ed25519 keys, in PEM form, that sign offers and receipts: the first signs, all are published. Only serve reads it. Empty: nothing is signed.',
    fallback: '',
    parse: anyText,
  },
  secretsKeyFile: {
    name: 'SECRETS_KEY_FILE',
    about:
      'The file with the keys that seal webhook secrets in the database, made by secrets create: the first seals, all open. serve and work need the same one. Required if NETWORKS has a live network. Empty: secrets are stored as they are.',
    fallback: '',
    parse: anyText,
  },
  smtpUrl: {
    name: 'SMTP_URL',
    about:
      'The mail server that sends invitations, recovery links and news for owners: smtps://user:password@mail.example:465, or smtp:// with a port such as 587. With smtp:// the server must offer STARTTLS unless it is this machine. Needs MAIL_FROM and SECRETS_KEY_FILE. Empty: no mails.',
    fallback: '',
    parse: optional(mailServer),
  },
  mailFrom: {
    name: 'MAIL_FROM',
    about: 'The sender of these mails, for example farthing@shop.example.',
    fallback: '',
    parse: optional(mailAddress),
  },
  webhookPrivateNetworks: {
    name: 'WEBHOOK_DANGEROUS_PRIVATE_NETWORKS',
    about:
      'Private CIDR ranges that webhooks may reach. Dangerous: every store can then send requests into them.',
    fallback: '',
    parse: networkRanges,
  },
  crashAt: {
    name: 'CRASH_AT',
    about: 'For tests: the crash point at which the process kills itself.',
    fallback: '',
    parse: anyText,
  },
}

/** Every setting, for the files that list them. */
export function listSettings(): readonly Setting<unknown>[] {
  return [...Object.values(settings), ...nodeNetworks.map(rpcSetting), ...nodeNetworks.map(auditSetting)]
}

export function rpcSetting(network: NodeNetwork): Setting<readonly Node[]> {
  const { id, name, witnessesMin } = network
  const secure = network.mode === 'live' ? ' https only, except on this machine or in a private network.' : ''
  const witnesses =
    witnessesMin > 1
      ? ` At least ${witnessesMin} independent providers: put a label before each URL (alpha=https://…); URLs with one label count as one provider.`
      : ''
  return {
    name: `${id}_RPC_URLS`,
    about: `JSON-RPC nodes of ${name}, separated by commas.${witnesses}${secure}`,
    fallback: '',
    parse: (text) => parseNodes(network, text),
  }
}

export function auditSetting(network: NodeNetwork): Setting<readonly Node[]> {
  const { id, name } = network
  return {
    name: `${id}_AUDIT_RPC_URLS`,
    about: `Other nodes of ${name} for the audit, which then asks none of ${id}_RPC_URLS (docs/audit.md). Empty: the same nodes.`,
    fallback: '',
    parse: (text) => parseNodes(network, text),
  }
}

function parseNodes(network: NodeNetwork, text: string) {
  const parsed = nodeList(text)
  if ('mistake' in parsed) return parsed
  const [mistake] = parsed.value.flatMap(({ url: address }) => findNodeMistake(network, address) ?? [])
  return mistake === undefined ? parsed : { mistake }
}

/** A network's nodes; none if it is not enabled. */
export function nodesOf({ networks: enabled, nodes }: Config, id: string): readonly Node[] {
  return enabled.includes(id) ? (nodes[id] ?? []) : []
}

/** The nodes that the audit asks. It also looks at networks that payments are not accepted on. */
export function auditNodesOf({ nodes, auditNodes }: Config, id: string): readonly Node[] {
  const own = auditNodes[id] ?? []
  return own.length > 0 ? own : (nodes[id] ?? [])
}

/** Mistakes in settings that are valid one by one but contradict each other. */
export function findContradictions(config: FixedConfig): string[] {
  return [...findConsoleMistakes(config), ...findMailMistakes(config)]
}

/** Cookies and passkeys belong to a host, on any port: another server on the console's host could use its cookie. */
function findConsoleMistakes({ consoleUrl, baseUrl, checkoutPageUrl, signUp }: FixedConfig): string[] {
  if (consoleUrl === '')
    return signUp === 'closed' ? [] : ['SIGN_UP needs CONSOLE_URL, which is where strangers sign up']
  const { hostname, protocol } = new URL(consoleUrl)
  const mistakes: string[] = []
  for (const [name, url] of [
    ['BASE_URL', baseUrl],
    ['CHECKOUT_PAGE_URL', checkoutPageUrl],
  ] as const) {
    if (new URL(url).hostname === hostname)
      mistakes.push(`CONSOLE_URL must have a host of its own, but ${name} has the same`)
  }
  if (protocol === 'http:' && !/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(new URL(baseUrl).hostname))
    mistakes.push('CONSOLE_URL may begin with http:// only where BASE_URL is an address of this machine')
  return mistakes
}

/** Mails carry links, so they are sealed while they wait. */
function findMailMistakes({ smtpUrl, mailFrom, secretsKeyFile }: FixedConfig): string[] {
  if (smtpUrl === '') return []
  return [
    ...(mailFrom === '' ? ['SMTP_URL needs MAIL_FROM, the address that mails come from'] : []),
    ...(secretsKeyFile === ''
      ? [
          'SMTP_URL needs SECRETS_KEY_FILE, because waiting mails have links in them. Run: secrets create --out FILE',
        ]
      : []),
  ]
}
