import { parseWalletAddress } from '../../chains/families.ts'
import { ConfigError, readConfig } from '../../config/read.ts'
import { type Network, networks } from '../../networks.ts'
import { checkEmail, checkText } from '../../stores/check-text.ts'
import { type Options, UsageError } from '../usage.ts'

/** What `setup` has to know. Each answer is checked as soon as it is given, by an option or at the terminal. */
export type Answers = {
  readonly host: string
  /** Empty: no console. */
  readonly consoleHost: string
  readonly network: Network
  readonly nodes: string
  readonly name: string
  readonly wallet: string
  /** Empty: no mails. */
  readonly mail: string
  readonly mailFrom: string
}

type Question = {
  readonly option: string
  readonly asks: string
  readonly fallback?: string
  /** Why the answer will not do, in words; null if it will. */
  refuse(
    text: string,
    before: Readonly<Record<string, string>>,
    asking: Asking,
  ): Promise<string | null> | string | null
}

export type Asking = {
  /** Asks the person at the terminal. Null if there is none: settings without an answer take their defaults. */
  readonly ask: ((question: string) => Promise<string>) | null
  /** Whether DNS knows a host name. */
  readonly hasAddress: (host: string) => Promise<boolean>
}

const offered = networks.filter(({ id }) => !id.endsWith('LOCAL'))

const questions: readonly Question[] = [
  {
    option: 'host',
    asks: 'The host name of the checkout, such as pay.example.com',
    refuse: (text, _before, asking) => refuseHost(text, asking),
  },
  {
    option: 'console-host',
    asks: 'The host name of the console, where people sign in, such as console.example.com; empty for none',
    fallback: '',
    refuse: async (text, { host }, asking) => {
      if (text === '') return null
      return text === host ? 'The console needs a host name of its own.' : await refuseHost(text, asking)
    },
  },
  {
    option: 'network',
    asks: `The network to be paid on: ${offered.map(({ id }) => id).join(', ')}`,
    fallback: 'BASE_SEPOLIA',
    refuse: (text) =>
      offered.some(({ id }) => id === text)
        ? null
        : `It is one of ${offered.map(({ id }) => id).join(', ')}.`,
  },
  {
    option: 'nodes',
    asks: 'The URLs of its nodes, of two providers or more, separated by commas',
    refuse: (text, { network = '' }) => refuseNodes(text, findNetwork(network)),
  },
  {
    option: 'name',
    asks: 'What your store is called',
    fallback: 'My shop',
    refuse: (text) => checkText('name', text, 100)[0]?.detail ?? null,
  },
  {
    option: 'wallet',
    asks: 'The address of the wallet that your store is paid to',
    refuse: (text, { network = '' }) => {
      const parsed = parseWalletAddress(findNetwork(network).family, text)
      return 'refusal' in parsed ? parsed.refusal : null
    },
  },
  {
    option: 'mail',
    asks: 'A mail server for links and news, such as smtps://user:password@mail.example:465; empty for none',
    fallback: '',
    refuse: (text) =>
      text === '' || /^smtps?:\/\/[^\s'"\\]+$/.test(text) ? null : 'It begins with smtps:// or smtp://.',
  },
  {
    option: 'mail-from',
    asks: 'The sender of these mails, such as farthing@shop.example',
    fallback: '',
    refuse: (text, { mail }) =>
      mail === '' || mail === undefined ? null : (checkEmail('mail-from', text)[0]?.detail ?? null),
  },
]

export async function collectAnswers(options: Options, asking: Asking): Promise<Answers> {
  const missing = questions.filter(
    ({ option, fallback }) => fallback === undefined && options[option] === undefined,
  )
  if (asking.ask === null && missing.length > 0)
    throw new UsageError(missing.map(({ option, asks }) => `--${option} is missing: ${asks}.`).join('\n'))
  const said: Record<string, string> = {}
  for (const question of questions) said[question.option] = await settle(question, options, said, asking)
  const { host = '', nodes = '', name = '', wallet = '', mail = '' } = said
  return {
    ...{ host, consoleHost: said['console-host'] ?? '', network: findNetwork(said.network ?? '') },
    ...{ nodes: labelNodes(nodes), name, wallet, mail, mailFrom: said['mail-from'] ?? '' },
  }
}

async function settle(
  question: Question,
  options: Options,
  before: Readonly<Record<string, string>>,
  asking: Asking,
): Promise<string> {
  const { option, asks, fallback } = question
  const { ask } = asking
  const given = options[option]
  if (typeof given === 'string') {
    const refusal = await question.refuse(given, before, asking)
    if (refusal !== null) throw new UsageError(`--${option} ${given}: ${refusal}`)
    return given
  }
  if (ask === null || (option === 'mail-from' && before.mail === '')) return fallback ?? ''
  for (;;) {
    const typed = (await ask(`${asks}${fallback ? ` [${fallback}]` : ''}: `)).trim()
    const text = typed === '' && fallback !== undefined ? fallback : typed
    const refusal = await question.refuse(text, before, asking)
    if (refusal === null) return text
    await ask(`${refusal} Press Enter to try again. `)
  }
}

function findNetwork(id: string): Network {
  const found = offered.find((network) => network.id === id)
  if (!found) throw new UsageError(`There is no network ${id}.`)
  return found
}

async function refuseHost(text: string, { hasAddress }: Asking): Promise<string | null> {
  if (!/^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$/.test(text))
    return 'It is not a host name in lower case, such as pay.example.com.'
  return (await hasAddress(text))
    ? null
    : 'No address is known for it. Point it to this machine in your DNS first: buyers and the certificate need that.'
}

/** Each URL counts as a provider of its own, unless it says otherwise. */
function labelNodes(text: string): string {
  return text
    .split(',')
    .map((node, i) => (/^\w+=/.test(node.trim()) ? node.trim() : `provider${i + 1}=${node.trim()}`))
    .join(',')
}

function refuseNodes(text: string, network: Network): string | null {
  const setting = `${network.id}_RPC_URLS`
  if (/[\s'"$`\\]/.test(text)) return 'It contains a space or a quotation mark.'
  try {
    readConfig({
      DATABASE_URL: 'postgres://none',
      BASE_URL: 'http://none',
      NETWORKS: network.id,
      [setting]: labelNodes(text),
    })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.replace(`${setting} `, 'It ')
  }
  const count = new Set(
    labelNodes(text)
      .split(',')
      .map((node) => node.split('=')[0]),
  ).size
  return count < network.witnessesMin
    ? `${network.name} needs nodes of at least ${network.witnessesMin} providers: a single one is not trusted.`
    : null
}
