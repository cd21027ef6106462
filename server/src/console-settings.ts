import { anyText, integer, passkeyOrigin, type Setting, url } from './parse-setting.ts'

/** Where stores' members sign in. */
export type ConsoleConfig = {
  /** Empty: the console is off. */
  readonly consoleUrl: string
  readonly consolePort: number
  /** Empty: the console connects as serve does. */
  readonly consoleDatabaseUrl: string
  readonly oidcFile: string
}

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
}
