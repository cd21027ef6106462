import { anyText, type Setting } from './parse-setting.ts'

/** How mails leave, if they do. */
export type MailConfig = {
  /** Empty: no mails are written. */
  readonly smtpUrl: string
  readonly mailFrom: string
}

export const mailSettings: { readonly [Key in keyof MailConfig]: Setting<MailConfig[Key]> } = {
  smtpUrl: {
    name: 'SMTP_URL',
    about:
      'The mail server that invitations, recovery links and news for owners are sent through as well: smtps://user:password@mail.example:465, or smtp:// with a port such as 587, which then must offer STARTTLS unless it is this machine. Needs MAIL_FROM and SECRETS_KEY_FILE. Empty: no mails.',
    fallback: '',
    parse: (text) => {
      if (text === '') return { value: text }
      const parsed = URL.canParse(text) ? new URL(text) : null
      const isServer =
        /^smtps?:$/.test(parsed?.protocol ?? '') && parsed?.hostname && /^\/?$/.test(parsed.pathname)
      return isServer && parsed.search === '' && parsed.hash === ''
        ? { value: text }
        : { mistake: 'must be smtp:// or smtps:// with a host, and no path' }
    },
  },
  mailFrom: {
    name: 'MAIL_FROM',
    about: 'The sender of these mails, for example farthing@shop.example.',
    fallback: '',
    parse: (text) =>
      text === '' || addressForm.test(text) ? anyText(text) : { mistake: 'must be an e-mail address' },
  },
}

const addressForm = /^[^\s@<>(),:;"\\]{1,64}@[A-Za-z0-9.-]{1,190}$/

/** Mails carry links, so they are sealed where they wait. */
export function findMailMistakes({
  smtpUrl,
  mailFrom,
  secretsKeyFile,
}: MailConfig & { readonly secretsKeyFile: string }): string[] {
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
