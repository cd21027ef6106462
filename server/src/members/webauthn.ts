import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import {
  type AuthenticationResponseJSON,
  type AuthenticatorTransport,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { decodeAttestationObject, decodeClientDataJSON, isoBase64URL } from '@simplewebauthn/server/helpers'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import { challengeSeconds } from './challenge.ts'
import type { NewPasskey, Passkey } from './member.ts'
import { Refusal } from './refusal.ts'

/**
 * Answers of browsers and authenticators, checked by @simplewebauthn/server. The relying party is the host of
 * CONSOLE_URL and the origin is CONSOLE_URL: neither ever comes from a request. The authenticator must have verified
 * the person. Whether the challenge in an answer is ours is not decided here but by the row that it deletes
 * (challenge.ts).
 */
export type CreationOptions = PublicKeyCredentialCreationOptionsJSON
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON

/** ES256, RS256 and EdDSA: every authenticator has one of these. */
const algorithms = [-7, -257, -8]
/** The standard allows ids of 1,023 bytes. */
const credentialIdMax = 1_364
const knownTransports = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

function relyingPartyOf({ config }: Context): { readonly origin: string; readonly id: string } {
  assert(config.consoleUrl !== '', 'the console is off')
  return { origin: config.consoleUrl, id: new URL(config.consoleUrl).hostname }
}

export function creationOptions(
  ctx: Context,
  challenge: string,
  member: { readonly id: string; readonly name: string; readonly email: string | null },
  existing: readonly Passkey[],
): CreationOptions {
  const { id } = relyingPartyOf(ctx)
  return {
    challenge,
    rp: { id, name: 'Farthing' },
    user: {
      id: Buffer.from(member.id).toString('base64url'),
      name: member.email ?? member.name,
      displayName: member.name,
    },
    pubKeyCredParams: algorithms.map((alg) => ({ alg, type: 'public-key' })),
    timeout: challengeSeconds * 1_000,
    attestation: 'none',
    excludeCredentials: existing.map(describe),
    // The authenticator finds it without a name, and uses it only after a PIN, a fingerprint or a face.
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
  }
}

/** With no passkeys the authenticator offers those it has for this site. */
export function requestOptions(
  ctx: Context,
  challenge: string,
  passkeys: readonly Passkey[],
): RequestOptions {
  return {
    challenge,
    rpId: relyingPartyOf(ctx).id,
    timeout: challengeSeconds * 1_000,
    allowCredentials: passkeys.map(describe),
    userVerification: 'required',
  }
}

function describe({ credentialId, transports }: Passkey) {
  return {
    id: credentialId,
    type: 'public-key' as const,
    transports: transports as AuthenticatorTransport[],
  }
}

/** A passkey that an authenticator made, and the challenge that it signed. */
export async function readNewPasskey(
  ctx: Context,
  answer: unknown,
  name: string,
  now: Date,
): Promise<{ readonly passkey: NewPasskey; readonly challenge: string }> {
  const response = parseAnswer(answer, ['clientDataJSON', 'attestationObject']) as RegistrationResponseJSON
  const { origin, id } = relyingPartyOf(ctx)
  const { challenge, verified } = await check(async () => {
    refuseCertificates(response.response.attestationObject)
    const { challenge } = decodeClientDataJSON(response.response.clientDataJSON)
    const verified = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: id,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    })
    return { challenge, verified }
  })
  if (!verified.verified) throw new Refusal('passkey')
  const { credential } = verified.registrationInfo
  if (credential.id.length > credentialIdMax) throw new Refusal('passkey')
  const claimed: unknown = response.response.transports
  const transports = Array.isArray(claimed) ? knownTransports.filter((each) => claimed.includes(each)) : []
  return {
    challenge,
    passkey: {
      id: newId('pk', ctx.config.cell, now),
      credentialId: credential.id,
      publicKey: credential.publicKey,
      counter: credential.counter,
      transports,
      name,
    },
  }
}

/**
 * A passkey's answer to a challenge, with that passkey. The caller still has to advance the counter and use the
 * challenge, in one transaction. An unknown passkey takes as long as a wrong signature.
 */
export type Assertion = { readonly passkey: Passkey; readonly challenge: string; readonly counter: number }

export async function readAssertion(
  ctx: Context,
  answer: unknown,
  find: (credentialId: string) => Promise<Passkey | null>,
): Promise<Assertion> {
  const response = parseAnswer(answer, [
    'clientDataJSON',
    'authenticatorData',
    'signature',
  ]) as AuthenticationResponseJSON
  const passkey = response.id.length > credentialIdMax ? null : await find(response.id)
  const { origin, id } = relyingPartyOf(ctx)
  const { challenge, verified } = await check(async () => {
    const { challenge } = decodeClientDataJSON(response.response.clientDataJSON)
    const verified = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: id,
      requireUserVerification: true,
      // `advanceCounter` compares the stored counter under the row's lock, once the signature is known to be good.
      credential: { id: response.id, publicKey: passkey?.publicKey ?? decoy(), counter: 0 },
    })
    return { challenge, verified }
  })
  const { userHandle } = response.response
  const isTheirs =
    userHandle === undefined ||
    userHandle === null ||
    (typeof userHandle === 'string' &&
      passkey !== null &&
      Buffer.from(userHandle, 'base64url').toString() === passkey.memberId)
  if (!passkey || !verified.verified || !isTheirs) throw new Refusal('passkey')
  return { passkey, challenge, counter: verified.authenticationInfo.newCounter }
}

/** The input comes from browsers and authenticators, so anything that the library cannot read is refused. */
async function check<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    throw new Refusal('passkey', { cause })
  }
}

function parseAnswer(answer: unknown, texts: readonly string[]): object {
  const { id, rawId, type, response } = (answer ?? {}) as Record<string, unknown>
  const fields = (response ?? {}) as Record<string, unknown>
  const isWhole =
    typeof id === 'string' &&
    id === rawId &&
    type === 'public-key' &&
    texts.every((name) => typeof fields[name] === 'string')
  if (!isWhole) throw new Refusal('passkey')
  return answer as object
}

/**
 * We ask for no attestation, so there are no certificates to read, and parsing a stranger's would only be a risk. A
 * passkey may still sign its own statement.
 */
function refuseCertificates(attestation: string): void {
  const object = decodeAttestationObject(isoBase64URL.toBuffer(attestation))
  const format = object.get('fmt')
  const isPlain = format === 'none' || (format === 'packed' && object.get('attStmt').get('x5c') === undefined)
  if (!isPlain) throw new Error(`attestation of format ${format} was not asked for`)
}

let decoyKey: Uint8Array<ArrayBuffer> | null = null

/** A P-256 key in COSE form, without its private key. */
function decoy(): Uint8Array<ArrayBuffer> {
  if (!decoyKey) {
    const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
      format: 'jwk',
    })
    const [head, middle] = [Buffer.from('a5010203262001215820', 'hex'), Buffer.from('225820', 'hex')]
    decoyKey = new Uint8Array(
      Buffer.concat([head, Buffer.from(x, 'base64url'), middle, Buffer.from(y, 'base64url')]),
    )
  }
  return decoyKey
}
