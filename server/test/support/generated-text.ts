import { readFileSync } from 'node:fs'
import type { SimulatedCase } from '@farthing/sdk'
import { listSettings } from '../../src/config/settings.ts'
import { openMetrics } from '../../src/metrics.ts'
import { networks, nodeNetworks } from '../../src/networks.ts'
import { cases } from '../../src/payments/sim/cases.ts'
import { generateSamples } from '../movements/support/samples.ts'
import { comes } from '../payments/sim/support/comes.ts'
import { floors } from '../tidy.ts'
import { cited, describePassed } from './passed.ts'

/** Text files and tables that repeat facts from the code: `npm run generate` writes them, a test compares them. */
export function generateTexts(): { readonly file: string; readonly text: string }[] {
  return [
    { file: '.env.example', text: generateEnvExample() },
    { file: 'sdk/src/agent/assets.ts', text: generateKnownAssets() },
    {
      file: 'docs/reference.md',
      text: withTables('docs/reference.md', [
        ['## Settings', settingsTable()],
        ['## Metrics', metricsTable()],
      ]),
    },
    { file: 'docs/deploying.md', text: withPassed('docs/deploying.md') },
    { file: 'docs/containers.md', text: withPassed('docs/containers.md') },
    {
      file: 'docs/api/answers.md',
      text: withTables('docs/api/answers.md', [['## Networks and assets', networksTable()]]),
    },
    {
      file: 'docs/test-stores.md',
      text: withTables('docs/test-stores.md', [['## What you can make happen', casesTable()]]),
    },
    ...generateSamples(),
    {
      file: 'CONTRIBUTING.md',
      text: withTables('CONTRIBUTING.md', [['## Rooms and floors', floorsTable()]]),
    },
  ]
}

export const root = new URL('../../../', import.meta.url).pathname

/** Example values for settings without a default and for those whose default depends on another setting. */
const examples: Readonly<Record<string, string>> = {
  DATABASE_URL: 'postgres://farthing:secret@localhost:5432/farthing',
  BASE_URL: 'https://farthing.example',
  CHECKOUT_PAGE_URL: 'https://farthing.example/pay',
}

function generateEnvExample(): string {
  const entries = listSettings().map(({ name, about, fallback }) => {
    const value = typeof fallback === 'string' ? fallback : examples[name]
    return `# ${about}\n${fallback === undefined ? '' : '# '}${name}=${value}\n`
  })
  const header =
    '# Settings of serve and work. Those without a # are required; the others show their defaults.\n'
  return [header, ...entries].join('\n')
}

function settingsTable(): string {
  const rows = listSettings().map(({ name, about, fallback }) => {
    const value =
      fallback === undefined
        ? 'required'
        : typeof fallback === 'function'
          ? 'see there'
          : fallback === ''
            ? 'none'
            : `\`${fallback}\``
    return `| \`${name}\` | ${value} | ${about.replaceAll('|', '\\|')} |`
  })
  return ['| Setting | Default | Meaning |', '|---|---|---|', ...rows].join('\n')
}

/** Our own metrics; those of Node and of the process are documented by prom-client. */
function metricsTable(): string {
  const rows = openMetrics()
    .registry.getMetricsAsArray()
    .filter(({ name }) => /^(farthing|http)_/.test(name))
    .map((metric) => {
      // The library's types leave these two out.
      const { type, labelNames } = metric as unknown as { type: string; labelNames: readonly string[] }
      const { name, help } = metric
      return `| \`${name}\` | ${type} | ${labelNames.join(', ')} | ${help} |`
    })
  return ['| Name | Type | Labels | Meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function networksTable(): string {
  const rows = networks.flatMap(({ id, caip2, mode, assets }) =>
    assets.map(
      ({ symbol, address, decimals }) =>
        `| \`${id}\` | \`${caip2}\` | ${mode} | ${symbol} | \`${address}\` | ${decimals} |`,
    ),
  )
  return [
    '| `chainId` | CAIP-2 id (`network`) | Stores | Token | Address (`asset`) | Decimals |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

function casesTable(): string {
  const rows = Object.entries(comes).map(([name, types]) => {
    const { says } = cases[name as SimulatedCase]
    const events = types.map((type) => `\`${type}\``).join(', ')
    return `| \`${name}\` | ${says} | ${events || 'none: only the payer is told'} |`
  })
  return ['| `case` | What happens | The events that follow |', '|---|---|---|', ...rows].join('\n')
}

function floorsTable(): string {
  const rows = floors.map((rooms, i) => {
    const names = rooms.map((room) => `\`${room.endsWith('.ts') ? room : `${room}/`}\``)
    return `| ${i + 1} | ${names.join(', ')} |`
  })
  return ['| Floor | Rooms and files |', '|---|---|', ...rows].join('\n')
}

function generateKnownAssets(): string {
  const assets = nodeNetworks.flatMap((network) =>
    network.assets.map(({ symbol, address, decimals, ...rest }) => {
      const domain = 'domain' in rest ? `\n    domain: ${literal(rest.domain)},` : ''
      return `  {
    symbol: '${symbol}',
    network: '${network.caip2}',
    networkName: '${network.name}',
    address: '${address}',
    decimals: ${decimals},${domain}
  },`
    }),
  )
  return `// Generated from server/src/networks.ts by npm run generate. Do not edit.

/** A token that is worth one US dollar. Payers use this table, because a server's word about itself proves nothing. */
export type Asset = {
  readonly symbol: string
  /** CAIP-2. */
  readonly network: string
  readonly networkName: string
  readonly address: string
  readonly decimals: number
  /** The token's EIP-712 domain, on EVM networks. */
  readonly domain?: { readonly name: string; readonly version: string }
}

export const knownAssets: readonly Asset[] = [
${assets.join('\n')}
]
`
}

function literal({ name, version }: { readonly name: string; readonly version: string }): string {
  return `{ name: '${name}', version: '${version}' }`
}

/** The file's text with what is said after each mark of a long test replaced. */
function withPassed(file: string): string {
  return cited.reduce(
    (text, name) =>
      text.replace(
        new RegExp(`(<!-- last passed: ${name} -->\\n)(?:\`\\.ci/long .*\\n)?`),
        `$1${describePassed(name)}\n`,
      ),
    readFileSync(root + file, 'utf8'),
  )
}

/** The file's text with the first table after each heading replaced. */
function withTables(file: string, tables: readonly (readonly [heading: string, table: string])[]): string {
  let text = readFileSync(root + file, 'utf8')
  for (const [heading, table] of tables) {
    const start = text.indexOf('\n|', text.indexOf(`\n${heading}\n`)) + 1
    const end = text.indexOf('\n\n', start)
    text = text.slice(0, start) + table + text.slice(end)
  }
  return text
}
