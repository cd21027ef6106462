import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { atEnd } from '../support/at-end.ts'

export type Received = { readonly to: readonly string[]; readonly user: string; readonly raw: string }

/** A real mail server on loopback that keeps what it gets. With `tls` it offers STARTTLS with a certificate of nobody. */
export async function startMailServer({ tls = false } = {}) {
  const received: Received[] = []
  const asked = { sessions: 0, passwords: 0 }
  const server = new SMTPServer({
    disabledCommands: tls ? [] : ['STARTTLS'],
    allowInsecureAuth: true,
    logger: false,
    onConnect(_session, done) {
      asked.sessions++
      done()
    },
    onAuth({ username, password }, _session, done) {
      asked.passwords++
      if (password !== 'p@ss word') return done(new Error('wrong password'))
      done(null, { user: username ?? '' })
    },
    onData(stream, { envelope, user }, done) {
      void text(stream).then((raw) => {
        received.push({ raw, user: String(user), to: envelope.rcptTo.map(({ address }) => address) })
        done()
      })
    },
  })
  const listener = server.listen(0, '127.0.0.1')
  await new Promise<void>((resolve) => listener.once('listening', () => resolve()))
  atEnd(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { received, asked, port: (listener.address() as AddressInfo).port }
}

/** The headers of a mail, unfolded, by lower-case name. */
export function headersOf({ raw }: Received): ReadonlyMap<string, string> {
  const head = raw.slice(0, raw.indexOf('\r\n\r\n')).replaceAll(/\r\n[ \t]/g, ' ')
  return new Map(
    head.split('\r\n').map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
}

/** Its text, as a reader sees it. */
export function textOf(mail: Received): string {
  const body = mail.raw.slice(mail.raw.indexOf('\r\n\r\n') + 4)
  const encoding = headersOf(mail).get('content-transfer-encoding')
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  if (encoding !== 'quoted-printable') return body
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
