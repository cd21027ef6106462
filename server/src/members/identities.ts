import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as oidc from 'openid-client'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId } from '../ids.ts'
import { announceEverywhere } from './announce.ts'
import { openChallenge, type Subject, tryChallenge } from './challenge.ts'
import { type Touch, useTouch } from './confirm.ts'
import type { Session } from './member.ts'
import { Refusal } from './refusal.ts'
import { deleteIdentities, lockMember } from './rows.ts'
import { type Browser, deleteSessionsOf, noteSignIn, openSession } from './session.ts'
import { hashToken } from './token.ts'

/**
 * Sign-in through a company's identity provider (OpenID Connect, authorization code with PKCE). A member connects their
 * account there to their membership here with a touch of the passkey. From then on the account signs them in. It opens
 * a session and nothing more: actions that need a touch still do. An account is identified by (issuer, subject), never
 * by its e-mail, which providers let people change. People who were not invited have no member to connect to.
 *
 * The state is a challenge for this browser and is used once. PKCE's verifier and the nonce are derived from it and
 * from the token in the browser's cookie, so no secret has to be kept between the two requests.
 */
export type Provider = { readonly issuer: string; readonly host: string; readonly redirectPath: string }

const providerTimeoutSeconds = 10

type Settings = { readonly issuer: string; readonly clientId: string; readonly clientSecret: string }

export type Identities = {
  readonly provider: Provider
  /** The URL for a browser that wants to sign in. */
  startSignIn(browserToken: string): Promise<string>
  /** The URL for a member's browser that wants to connect an account. */
  startConnect(touch: Touch, browserToken: string, now: Date): Promise<string>
  /** Handles the provider's answer. Returns a session's token, or null if an account was connected. */
  finish(browser: Browser, session: Session | null, query: string, now: Date): Promise<string | null>
}

/** Null without a provider. */
export function openIdentities(ctx: Context): Identities | null {
  if (ctx.config.oidcFile === '') return null
  const settings = readSettings(ctx.config.oidcFile)
  const { issuer } = settings
  const provider: Provider = {
    issuer,
    host: new URL(issuer).host,
    // One per issuer, so that one provider's answer cannot be passed off as another's.
    redirectPath: `/oidc/${hash('sha256', issuer, 'hex').slice(0, 16)}`,
  }
  const redirectUri = ctx.config.consoleUrl + provider.redirectPath
  const client = openClient(ctx, settings, redirectUri)

  return {
    provider,
    startSignIn: (browserToken) => client.start(browserToken, signInSubject),
    async startConnect(touch, browserToken, now) {
      await ctx.db.transaction((tx) => useTouch(ctx, tx, touch, { action: 'identity.add', values: {} }, now))
      return await client.start(browserToken, connectSubject(touch.session))
    },
    async finish(browser, session, query, now) {
      const answered = new URL(`${redirectUri}?${query}`)
      const state = answered.searchParams.get('state') ?? ''
      const browserHash = hashToken(browser.token)
      const intent = await ctx.db.transaction(async (tx) => {
        if (session && (await tryChallenge(tx, state, 'oidc', browserHash, connectSubject(session))))
          return session
        if (await tryChallenge(tx, state, 'oidc', browserHash, signInSubject)) return 'sign-in'
        throw new Refusal('challenge')
      })
      const subject = await client.exchange(answered, state, browser.token)
      return await ctx.db.transaction(async (tx) => {
        if (intent !== 'sign-in') {
          await lockMember(tx, intent.member.id)
          if (!(await insertIdentity(tx, issuer, subject, intent.member.id, now)))
            throw new Refusal('identity_taken')
          await announceEverywhere(ctx, tx, intent.member, 'member.identity_added', now)
          return null
        }
        // The lock makes a sign-in wait for a recovery or a removal, which deletes the row.
        const [identity] = await tx.query<{ memberId: MemberId }>(
          'select member_id as "memberId" from identities where issuer = $1 and subject = $2 for share',
          [issuer, subject],
        )
        if (!identity) throw new Refusal('identity')
        const { memberId } = identity
        await noteSignIn(ctx, tx, memberId, browser, now)
        return await openSession(ctx, tx, { memberId, passkeyId: null, browser, now })
      })
    },
  }
}

/** Talks to the provider. It is discovered when it is first needed, and again after a failure. */
function openClient(ctx: Context, { issuer, clientId, clientSecret }: Settings, redirectUri: string) {
  let discovered: Promise<oidc.Configuration> | null = null

  async function discover(): Promise<oidc.Configuration> {
    // On http://localhost the provider may be local too; everywhere else it needs https.
    const execute = ctx.config.consoleUrl.startsWith('http:') ? [oidc.allowInsecureRequests] : []
    const options = { execute, timeout: providerTimeoutSeconds }
    discovered ??= oidc.discovery(new URL(issuer), clientId, clientSecret, undefined, options)
    return await discovered.catch((cause) => {
      discovered = null
      throw new Refusal('provider', { cause })
    })
  }

  return {
    async start(browserToken: string, subject: Subject): Promise<string> {
      const config = await discover()
      const state = await openChallenge(ctx, 'oidc', hashToken(browserToken), subject)
      const { verifier, nonce } = derive(state, browserToken)
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: 'openid',
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return url.href
    },
    /** The account's subject, from an ID token of this issuer for us, with our nonce. */
    async exchange(answered: URL, state: string, browserToken: string): Promise<string> {
      const config = await discover()
      const { verifier, nonce } = derive(state, browserToken)
      try {
        const tokens = await oidc.authorizationCodeGrant(config, answered, {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        if (claims?.iss !== issuer) throw new Error(`the ID token is by ${claims?.iss}`)
        return claims.sub
      } catch (cause) {
        throw new Refusal('provider', { cause })
      }
    },
  }
}

/**
 * Needs a touch, so that a member notices the loss of a way to sign in. It also ends the sessions that the account
 * opened, except the current one.
 */
export async function removeIdentity(ctx: Context, touch: Touch, now: Date): Promise<void> {
  const { session } = touch
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, session.member.id)
    await useTouch(ctx, tx, touch, { action: 'identity.remove', values: {} }, now)
    // In this order, a sign-in with the account either waits for us and fails, or is seen and ended.
    await deleteIdentities(tx, session.member.id)
    await deleteSessionsOf(tx, session.member.id, null, session.id)
    await announceEverywhere(ctx, tx, session.member, 'member.identity_removed', now)
  })
}

const signInSubject: Subject = { intent: 'sign-in' }

function connectSubject({ member }: Session): Subject {
  return { intent: 'connect', memberId: member.id }
}

function derive(state: string, browserToken: string): { readonly verifier: string; readonly nonce: string } {
  const from = (use: string) => hash('sha256', `${use} ${state} ${browserToken}`, 'base64url')
  return { verifier: from('pkce'), nonce: from('nonce') }
}

function readSettings(file: string): Settings {
  const { issuer, clientId, clientSecret } = JSON.parse(readFileSync(file, 'utf8'))
  const isWhole = [issuer, clientId, clientSecret].every((value) => typeof value === 'string' && value !== '')
  if (isWhole && URL.canParse(issuer)) return { issuer, clientId, clientSecret }
  throw new ConfigError(`OIDC_FILE (${file}) must be JSON with the texts issuer, clientId and clientSecret.`)
}

/** False if a member has already connected this account. */
async function insertIdentity(
  tx: Transaction,
  issuer: string,
  subject: string,
  memberId: MemberId,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into identities (issuer, subject, member_id, created_at) values ($1, $2, $3, $4)
     on conflict do nothing returning subject`,
    [issuer, subject, memberId, now],
  )
  return rows.length > 0
}

export async function hasIdentity(db: Database, memberId: MemberId): Promise<boolean> {
  return (await db.query('select 1 as one from identities where member_id = $1', [memberId])).length > 0
}
