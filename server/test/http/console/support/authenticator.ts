import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** An authenticator in software, for tests that need many answers: ES256, with or without a counter. */
export type Authenticator = ReturnType<typeof openAuthenticator>

type Quirks = {
  /** What the browser says where it is. */
  readonly origin?: string
  readonly rpId?: string
  /** Says that the person was not verified. */
  readonly isUnverified?: boolean
  readonly counter?: number
  readonly type?: string
}

export function openAuthenticator(url: string, counts = true) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const id = randomBytes(16)
  let counter = counts ? 1 : 0
  let userHandle: string | undefined

  function data({ rpId = new URL(url).hostname, isUnverified = false, ...quirks }: Quirks, made: Buffer) {
    const flags = (isUnverified ? 0x01 : 0x05) | (made.length > 0 ? 0x40 : 0)
    const count = Buffer.alloc(4)
    count.writeUInt32BE(quirks.counter ?? counter)
    if (counts) counter++
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.from([flags]), count, made])
  }

  function client(type: string, challenge: string, { origin = url, ...quirks }: Quirks): Buffer {
    return Buffer.from(JSON.stringify({ type: quirks.type ?? type, challenge, origin, crossOrigin: false }))
  }

  return {
    id: id.toString('base64url'),

    create(
      options: { readonly challenge: string; readonly user: { readonly id: string } },
      quirks: Quirks = {},
    ) {
      userHandle ??= options.user.id
      const key = Buffer.concat([
        Buffer.from('a5010203262001215820', 'hex'),
        Buffer.from(x, 'base64url'),
        Buffer.from('225820', 'hex'),
        Buffer.from(y, 'base64url'),
      ])
      const made = data(quirks, Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, key]))
      const length = Buffer.alloc(2)
      length.writeUInt16BE(made.length)
      // CBOR: { fmt: "none", attStmt: {}, authData: … }
      const head = Buffer.from('a363666d74646e6f6e656761747453746d74a068617574684461746159', 'hex')
      return answer({
        clientDataJSON: text(client('webauthn.create', options.challenge, quirks)),
        attestationObject: text(Buffer.concat([head, length, made])),
        transports: ['internal'],
      })
    },

    touch(options: { readonly challenge: string }, quirks: Quirks = {}) {
      const clientData = client('webauthn.get', options.challenge, quirks)
      const authData = data(quirks, Buffer.alloc(0))
      const signed = Buffer.concat([authData, createHash('sha256').update(clientData).digest()])
      return answer({
        clientDataJSON: text(clientData),
        authenticatorData: text(authData),
        signature: text(sign('sha256', signed, privateKey)),
        ...(userHandle !== undefined && { userHandle }),
      })
    },
  }

  function answer(response: Record<string, unknown>) {
    const name = text(id)
    return { id: name, rawId: name, type: 'public-key', response, clientExtensionResults: {} }
  }
}

function text(bytes: Buffer): string {
  return bytes.toString('base64url')
}
