import { isIP } from 'node:net'

/**
 * The only reader of the environment. `readConfig` is pure and reports every mistake at once, each as a sentence that
 * names the setting, so that an operator repairs a deployment in one go. `.env.example` is tested against `settings`.
 */
export type Config = {
  readonly databaseUrl: string
  readonly host: string
  readonly port: number
  readonly operationsHost: string
  readonly operationsPort: number
  readonly baseUrl: string
  readonly checkoutPageUrl: string
  readonly cell: string
  readonly networks: readonly string[]
  readonly trustedProxies: readonly string[]
  readonly keyRequestsPerSecond: number
  readonly addressRequestsPerSecond: number
  readonly liveConnectionsMax: number
  readonly liveConnectionsPerAddress: number
  readonly bodyLimitBytes: number
  readonly databaseConnections: number
  readonly migrateOnStart: boolean
  readonly drainSeconds: number
  readonly logLevel: string
  readonly ecbRatesUrl: string
  readonly exchangeRatesUrl: string
  readonly fixedRates: ReadonlyMap<string, string>
  readonly baseMainnetRpcUrls: readonly string[]
  readonly baseSepoliaRpcUrls: readonly string[]
  readonly localRpcUrls: readonly string[]
  readonly solanaMainnetRpcUrls: readonly string[]
  readonly solanaDevnetRpcUrls: readonly string[]
  readonly solanaLocalRpcUrls: readonly string[]
  readonly solanaTokenAccountsPerDay: number
  readonly settlerKeysFile: string
  readonly webhookPrivateNetworks: readonly string[]
  readonly crashAt: string
}

type Environment = Readonly<Record<string, string | undefined>>

type Setting<Value> = {
  readonly name: string
  /** One sentence for `.env.example` and the docs. */
  readonly about: string
  /** Undefined means that the setting is required. */
  readonly fallback?: string | ((environment: Environment) => string)
  /** The value, or the reason why the text isn't one. */
  readonly parse: (text: string) => { readonly value: Value } | { readonly mistake: string }
}

export const settings: { readonly [Key in keyof Config]: Setting<Config[Key]> } = {
  databaseUrl: {
    name: 'DATABASE_URL',
    about: 'PostgreSQL 15 or later, for example postgres://farthing:secret@db.internal:5432/farthing.',
    parse: url('postgres:', 'postgresql:'),
  },
  host: { name: 'HOST', about: 'Address that serve listens on.', fallback: '127.0.0.1', parse: anyText },
  port: {
    name: 'PORT',
    about: 'Port that serve listens on; 0 takes a free one.',
    fallback: '8402',
    parse: integer(0, 65_535),
  },
  operationsHost: {
    name: 'OPERATIONS_HOST',
    about: 'Address of the operations door: /livez, /readyz and /metrics. Keep it private.',
    fallback: '127.0.0.1',
    parse: anyText,
  },
  operationsPort: {
    name: 'OPERATIONS_PORT',
    about: 'Port of the operations door; 0 takes a free one. Two processes on one machine need two ports.',
    fallback: '9402',
    parse: integer(0, 65_535),
  },
  baseUrl: {
    name: 'BASE_URL',
    about:
      'Where the API is reached from outside, without a trailing slash. Every address we give out starts with it.',
    parse: webUrl,
  },
  checkoutPageUrl: {
    name: 'CHECKOUT_PAGE_URL',
    about:
      'Where payment pages are reached from outside: checkoutUrl is this, a slash and the id. Default: BASE_URL/pay.',
    fallback: (environment) => `${environment.BASE_URL ?? 'https://invalid'}/pay`,
    parse: webUrl,
  },
  cell: {
    name: 'CELL',
    about: 'Two characters of 0-9 and a-z in every id and key that this deployment makes. Never change it.',
    fallback: '00',
    parse: (text) =>
      /^[0-9a-z]{2}$/.test(text) ? { value: text } : { mistake: 'must be two characters of 0-9 and a-z' },
  },
  networks: {
    name: 'NETWORKS',
    about:
      'Networks that payments are taken on: BASE_MAINNET, BASE_SEPOLIA, LOCAL, SOLANA_MAINNET, SOLANA_DEVNET, SOLANA_LOCAL.',
    fallback: 'BASE_MAINNET,BASE_SEPOLIA',
    parse: knownNetworks,
  },
  trustedProxies: {
    name: 'TRUSTED_PROXIES',
    about: 'Addresses or CIDR ranges whose X-Forwarded-For is believed. Empty: none.',
    fallback: '',
    parse: list,
  },
  keyRequestsPerSecond: {
    name: 'KEY_REQUESTS_PER_SECOND',
    about: 'Requests a second that one API key may make of one process.',
    fallback: '100',
    parse: integer(1, 1_000_000),
  },
  addressRequestsPerSecond: {
    name: 'ADDRESS_REQUESTS_PER_SECOND',
    about: 'Requests a second without a known key that one address (IPv6: one /64) may make of one process.',
    fallback: '20',
    parse: integer(1, 1_000_000),
  },
  liveConnectionsMax: {
    name: 'LIVE_CONNECTIONS_MAX',
    about:
      'Payment pages that one process keeps up to date by a connection. Those beyond it ask every few seconds.',
    fallback: '8000',
    parse: integer(0, 1_000_000),
  },
  liveConnectionsPerAddress: {
    name: 'LIVE_CONNECTIONS_PER_ADDRESS',
    about: 'Of these, how many one address (IPv6: one /64) may hold.',
    fallback: '50',
    parse: integer(0, 1_000_000),
  },
  bodyLimitBytes: {
    name: 'BODY_LIMIT_BYTES',
    about: 'Largest request body.',
    fallback: '65536',
    parse: integer(1024, 1_048_576),
  },
  databaseConnections: {
    name: 'DATABASE_CONNECTIONS',
    about:
      'Connections a process may open; half are pipelined, half for transactions. More than 16 made a 2-core server slower.',
    fallback: '16',
    parse: integer(4, 200),
  },
  migrateOnStart: {
    name: 'MIGRATE_ON_START',
    about:
      'Whether serve and work bring the schema up to date when they start. With false they only check it.',
    fallback: 'true',
    parse: (text) =>
      text === 'true' || text === 'false' ? { value: text === 'true' } : { mistake: 'must be true or false' },
  },
  drainSeconds: {
    name: 'DRAIN_SECONDS',
    about: 'How long /readyz says no before serve stops listening, so that a balancer looks away first.',
    fallback: '0',
    parse: integer(0, 60),
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
      'An exchange’s rates of the dollar, in the format of Coinbase’s exchange-rates (JSON). Empty: not used.',
    fallback: 'https://api.coinbase.com/v2/exchange-rates?currency=USD',
    parse: optionalUrl,
  },
  fixedRates: {
    name: 'FIXED_RATES',
    about:
      'For development: rates that never change, in units a US dollar, such as EUR=0.86,JPY=155. Empty: none.',
    fallback: '',
    parse: rateList,
  },
  baseMainnetRpcUrls: {
    name: 'BASE_MAINNET_RPC_URLS',
    about: 'JSON-RPC nodes of Base, separated by commas. work needs two that do not share a fate.',
    fallback: '',
    parse: urlList,
  },
  baseSepoliaRpcUrls: {
    name: 'BASE_SEPOLIA_RPC_URLS',
    about: 'JSON-RPC nodes of Base Sepolia, separated by commas.',
    fallback: '',
    parse: urlList,
  },
  localRpcUrls: {
    name: 'LOCAL_RPC_URLS',
    about: 'JSON-RPC nodes of a local chain with id 31337, separated by commas.',
    fallback: '',
    parse: urlList,
  },
  solanaMainnetRpcUrls: {
    name: 'SOLANA_MAINNET_RPC_URLS',
    about:
      'JSON-RPC nodes of Solana that keep transaction history, separated by commas. work needs two that do not share a fate.',
    fallback: '',
    parse: urlList,
  },
  solanaDevnetRpcUrls: {
    name: 'SOLANA_DEVNET_RPC_URLS',
    about: 'JSON-RPC nodes of Solana’s devnet, separated by commas.',
    fallback: '',
    parse: urlList,
  },
  solanaLocalRpcUrls: {
    name: 'SOLANA_LOCAL_RPC_URLS',
    about: 'JSON-RPC nodes of a local Solana chain, separated by commas.',
    fallback: '',
    parse: urlList,
  },
  solanaTokenAccountsPerDay: {
    name: 'SOLANA_TOKEN_ACCOUNTS_PER_DAY',
    about:
      'How many token accounts settlers may create for stores’ Solana wallets in a day, at about 0.002 SOL each. With 0 stores make their own.',
    fallback: '0',
    parse: integer(0, 10_000),
  },
  settlerKeysFile: {
    name: 'SETTLER_KEYS_FILE',
    about:
      'File of the private keys that work pays fees with, one a line: 0x… for EVM, the 64 numbers of a key file in brackets for Solana. Readable by work alone; serve needs none.',
    fallback: '',
    parse: anyText,
  },
  webhookPrivateNetworks: {
    name: 'WEBHOOK_DANGEROUS_PRIVATE_NETWORKS',
    about:
      'Private CIDR ranges that webhooks may reach all the same. Dangerous: every store can then send requests into them.',
    fallback: '',
    parse: networkRanges,
  },
  crashAt: {
    name: 'CRASH_AT',
    about: 'For tests: the named point at which the process kills itself.',
    fallback: '',
    parse: anyText,
  },
}

/** Thrown by readConfig: the message lists every mistake, one a line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export function readConfig(environment: Environment = process.env): Config {
  const mistakes: string[] = []
  const config = Object.fromEntries(
    Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, environment, mistakes)]),
  )
  if (mistakes.length > 0) throw new ConfigError(mistakes.join('\n'))
  return config as Config
}

/** What `dev` leaves open. Everything else it decides itself. */
export function readDevChoices(environment: Environment = process.env): {
  readonly databaseUrl: string | null
  readonly port: number
} {
  const { DATABASE_URL = '', PORT = '8402' } = environment
  const standIns = { DATABASE_URL: DATABASE_URL || 'postgres://none', BASE_URL: 'http://none', PORT }
  return { databaseUrl: DATABASE_URL || null, port: readConfig(standIns).port }
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
  // A default built from another setting is that setting's mistake, which is listed already.
  if (environment[name] !== undefined || typeof fallback === 'string')
    mistakes.push(`${name} ${parsed.mistake}`)
  return undefined
}

function anyText(text: string) {
  return { value: text }
}

function list(text: string) {
  return {
    value: text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  }
}

/** The names in chains/networks.ts, which stands above this file; its test compares the two. */
export const networkNames = [
  'BASE_MAINNET',
  'BASE_SEPOLIA',
  'LOCAL',
  'SOLANA_MAINNET',
  'SOLANA_DEVNET',
  'SOLANA_LOCAL',
]

function knownNetworks(text: string) {
  const parsed = list(text)
  const unknown = parsed.value.filter((name) => !networkNames.includes(name))
  return unknown.length === 0 ? parsed : { mistake: `names unknown networks: ${unknown.join(', ')}` }
}

function rateList(text: string) {
  const parsed = list(text)
  const isRate = (item: string) => /^[A-Z]{3}=\d{1,9}(\.\d{1,9})?$/.test(item) && /=.*[1-9]/.test(item)
  return parsed.value.every(isRate)
    ? { value: new Map(parsed.value.map((item): [string, string] => [item.slice(0, 3), item.slice(4)])) }
    : { mistake: 'must be rates such as EUR=0.86,JPY=155' }
}

/** CIDR ranges, such as 10.1.0.0/16 or fd00::/8. */
function networkRanges(text: string) {
  const parsed = list(text)
  const isRange = (item: string) => {
    const [address = '', bits = ''] = item.split('/')
    const family = isIP(address)
    return family !== 0 && /^\d{1,3}$/.test(bits) && Number.parseInt(bits, 10) <= (family === 4 ? 32 : 128)
  }
  const wrong = parsed.value.filter((item) => !isRange(item))
  return wrong.length === 0
    ? parsed
    : { mistake: `must be ranges such as 10.1.0.0/16, but has ${wrong.join(', ')}` }
}

function integer(min: number, max: number) {
  return (text: string) => {
    const value = /^\d{1,9}$/.test(text) ? Number.parseInt(text, 10) : Number.NaN
    return value >= min && value <= max
      ? { value }
      : { mistake: `must be a whole number from ${min} to ${max}` }
  }
}

function url(...protocols: string[]) {
  return (text: string) =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol)
      ? { value: text }
      : {
          mistake: `must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
        }
}

function urlList(text: string) {
  const parsed = list(text)
  const wrong = parsed.value.some((item) => 'mistake' in url('https:', 'http:')(item))
  return wrong ? { mistake: 'must be URLs separated by commas' } : parsed
}

function optionalUrl(text: string) {
  return text === '' ? { value: text } : webUrl(text)
}

function webUrl(text: string) {
  const parsed = url('https:', 'http:')(text)
  if ('mistake' in parsed) return parsed
  const { hash, username, password } = new URL(text)
  if (text.endsWith('/') || hash !== '' || username !== '' || password !== '') {
    return { mistake: 'must not end with a slash or carry a fragment or credentials' }
  }
  return parsed
}
