import { anyText, integer, nativeAmount, passkeyOrigin, type Setting, url } from './parse-setting.ts'

/** Where stores' members sign in. */
export type ConsoleConfig = {
  /** Empty: the console is off. */
  readonly consoleUrl: string
  readonly consolePort: number
  /** Empty: the console connects as serve does. */
  readonly consoleDatabaseUrl: string
  readonly oidcFile: string
  readonly signUp: SignUp
  readonly signUpsPerBlock: number
  readonly signUpsPerDay: number
  readonly unprovenCheckoutsPerHour: number
  /** In wei. Null: not limited more than other stores. */
  readonly unprovenGasPerDay: bigint | null
}

/** Whether strangers may open stores: not at all, when an operator approves them, or when they prove a wallet. */
type SignUp = (typeof signUps)[number]

const signUps = ['closed', 'approval', 'open'] as const

export const consoleSettings: { readonly [Key in keyof ConsoleConfig]: Setting<ConsoleConfig[Key]> } = {
  consoleUrl: {
    name: 'CONSOLE_URL',
    about:
      'The public URL of the console, where stores’ members sign in. Its host must be neither that of BASE_URL nor that of CHECKOUT_PAGE_URL; members’ passkeys belong to this host, so changing it means that all of them enrol again. Empty: there is no console.',
    fallback: '',
    parse: passkeyOrigin,
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
    parse: (text) => (text === '' ? { value: '' } : url('postgres:', 'postgresql:')(text)),
  },
  oidcFile: {
    name: 'OIDC_FILE',
    about:
      'A JSON file with issuer, clientId and clientSecret of an OpenID provider that members may also sign in through. Only serve reads it. Empty: passkeys only.',
    fallback: '',
    parse: anyText,
  },
  signUp: {
    name: 'SIGN_UP',
    about:
      'Whether strangers may open stores at CONSOLE_URL/sign-up. closed: they may not. approval: they get a test store at once, and a live one that creates checkouts when an operator has approved it. open: the live one creates checkouts once it has proven its wallet.',
    fallback: 'closed',
    parse: (text) => {
      const value = signUps.find((each) => each === text)
      return value ? { value } : { mistake: `must be ${signUps.join(', ')}` }
    },
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
      'How many may sign up per day (UTC) from anywhere: what an operator can look at, and a bound for whoever has many addresses.',
    fallback: '100',
    parse: integer(1, 1_000_000),
  },
  unprovenCheckoutsPerHour: {
    name: 'UNPROVEN_CHECKOUTS_PER_HOUR',
    about:
      'Checkouts per hour of a store that somebody signed up for and that has not proven a wallet: enough to try everything, too few to fill the database.',
    fallback: '60',
    parse: integer(1, 1_000_000),
  },
  unprovenGasPerDay: {
    name: 'UNPROVEN_GAS_PER_DAY',
    about:
      'What settlements for such a store may cost per day on each network whose fees are paid in ether, in ETH, if that is less than STORE_GAS_PER_DAY. Empty: the same as for every store.',
    fallback: '0.002',
    parse: nativeAmount,
  },
}
