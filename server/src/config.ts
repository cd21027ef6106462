import { type ConsoleConfig, consoleSettings } from './console-settings.ts'
import { firstCell } from './ids.ts'
import { findMailMistakes, type MailConfig, mailSettings } from './mail-settings.ts'
import { findNodeMistake, type Network, networks } from './networks.ts'
import {
  anyText,
  type Environment,
  findConsoleMistakes,
  integer,
  knownNetworks,
  list,
  type Node,
  nativeAmount,
  networkRanges,
  nodeList,
  optionalUrl,
  rateList,
  type Setting,
  url,
  webUrl,
  zeroOr,
} from './parse-setting.ts'
import { type SigningConfig, signingSettings } from './signing-settings.ts'

/**
 * The only reader of the environment. `readConfig` is pure and reports every mistake at once, each as a sentence that
 * names the setting, so that an operator can fix all of them at once. `npm run generate` writes `.env.example` and
 * the table in docs/reference.md from the settings here.
 */
export type Config = Grouped & {
  readonly databaseUrl: string
  readonly host: string
  readonly port: number
  readonly operationsHost: string
  readonly operationsPort: number
  readonly baseUrl: string
  readonly checkoutPageUrl: string
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
  readonly singleNodeUpTo: number
  /** In wei. Null: not limited. */
  readonly storeGasPerDay: bigint | null
  readonly solanaTokenAccountsPerDay: number
  readonly settlerKeysFile: string
  readonly receiptKeysFile: string
  readonly secretsKeyFile: string
  readonly webhookPrivateNetworks: readonly string[]
  /** 0: nothing is deleted. */
  readonly retentionDays: number
  readonly crashAt: string
}

type Grouped = ConsoleConfig & MailConfig & SigningConfig
type FixedConfig = Omit<Config, 'nodes'>

export const settings: { readonly [Key in keyof FixedConfig]: Setting<FixedConfig[Key]> } = {
  databaseUrl: {
    name: 'DATABASE_URL',
    about:
      'PostgreSQL 15 or later, for example postgres://farthing:secret@db.internal:5432/farthing. With ?sslmode=verify-full&sslrootcert=FILE the server must prove that it is that host.',
    parse: url('postgres:', 'postgresql:'),
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
  ...consoleSettings,
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
    parse: (text) => (text === '' ? { value: text } : url('postgres:', 'postgresql:')(text)),
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
      'How many days after a checkout ended, and nothing happened to it since, work deletes it with its payments and events: 90 to 36,500. 0: never. Books must be kept for years nearly everywhere: ask before you set it.',
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
    parse: optionalUrl,
  },
  exchangeRatesUrl: {
    name: 'EXCHANGE_RATES_URL',
    about:
      'Exchange rates of the US dollar, in the format of Coinbase’s exchange-rates endpoint (JSON). Empty: not used.',
    fallback: 'https://api.coinbase.com/v2/exchange-rates?currency=USD',
    parse: optionalUrl,
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
      'How many US dollars of payments, together per network, may complete checkouts while only one provider has reported them. Larger ones wait for the second.',
    fallback: '100',
    parse: integer(0, 1_000_000),
  },
  storeGasPerDay: {
    name: 'STORE_GAS_PER_DAY',
    about:
      'What settlements for one store may cost per day (UTC) on each network whose fees are paid in ether, in ETH. Failed ones count too. Beyond it the store’s payments get 503 until the next day. Empty: no limit.',
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
  ...signingSettings,
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
      'The file with the keys that seal webhook secrets in the database, made by secrets create: the first seals, all open. serve and work need the same one. Required where a live network is in NETWORKS. Empty: secrets are stored as they are.',
    fallback: '',
    parse: anyText,
  },
  ...mailSettings,
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

/** Thrown by readConfig: the message lists every mistake, one per line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export function readConfig(environment: Environment = process.env): Config {
  const mistakes: string[] = []
  const fixed = Object.fromEntries(
    Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, environment, mistakes)]),
  )
  const nodes = Object.fromEntries(
    networks.map((network) => [network.id, readSetting(rpcSetting(network), environment, mistakes)]),
  )
  const read = fixed as unknown as FixedConfig
  if (mistakes.length === 0) mistakes.push(...findConsoleMistakes(read), ...findMailMistakes(read))
  if (mistakes.length > 0) throw new ConfigError(mistakes.join('\n'))
  return { ...fixed, nodes } as Config
}

/** A network's nodes; none if it is not enabled. */
export function nodesOf({ networks: enabled, nodes }: Config, id: string): readonly Node[] {
  return enabled.includes(id) ? (nodes[id] ?? []) : []
}

/** Every setting, for the files that list them. */
export function listSettings(): readonly Setting<unknown>[] {
  return [...Object.values(settings), ...networks.map(rpcSetting)]
}

function rpcSetting(network: Network): Setting<readonly Node[]> {
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
    parse: (text) => {
      const parsed = nodeList(text)
      if ('mistake' in parsed) return parsed
      const [mistake] = parsed.value.flatMap(({ url: address }) => findNodeMistake(network, address) ?? [])
      return mistake === undefined ? parsed : { mistake }
    },
  }
}

/** What this process was started with, for whoever looks elsewhere for what is missing in it. */
export function readEnvironment(): Environment {
  return process.env
}

/** The settings that `dev` reads. It decides all others itself. */
export function readDevChoices(environment: Environment = process.env): {
  readonly databaseUrl: string | null
  readonly port: number
  readonly consolePort: number
} {
  const { DATABASE_URL = '', PORT = '8402', CONSOLE_PORT } = environment
  const standIns = { DATABASE_URL: DATABASE_URL || 'postgres://none', BASE_URL: 'http://none', PORT }
  const { port } = readConfig(standIns)
  const { consolePort } = readConfig({ ...standIns, CONSOLE_PORT: CONSOLE_PORT ?? `${port + 1}` })
  return { databaseUrl: DATABASE_URL || null, port, consolePort }
}

/** The settings that `signer` reads. It has no database and no address on the network. */
export function readSignerChoices(environment: Environment = process.env): Config {
  return readConfig({ ...environment, DATABASE_URL: 'postgres://none', BASE_URL: 'http://none' })
}

/** For local chains: the file of a token to place instead of ours (see dev/placement.ts); empty for ours. */
export function readTokenArtifact(environment: Environment = process.env): string {
  return environment.TOKEN_ARTIFACT ?? ''
}

function readSetting(setting: Setting<unknown>, environment: Environment, mistakes: string[]): unknown {
  const { name, fallback } = setting
  const text = environment[name] ?? (typeof fallback === 'function' ? fallback(environment) : fallback)
  if (text === undefined || (text === '' && fallback === undefined)) {
    mistakes.push(`${name} is required: ${setting.about}`)
    return undefined
  }
  const parsed = setting.parse(text)
  if ('value' in parsed) return parsed.value
  // If the default is built from another setting, the mistake is in that setting and listed already.
  if (environment[name] !== undefined || typeof fallback === 'string')
    mistakes.push(`${name} ${parsed.mistake}`)
  return undefined
}
