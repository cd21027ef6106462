import type { Actor, WalletChanges } from '@farthing/sdk'
import type { AlertKind, Role } from '../../../members/member.ts'
import type { Reason } from '../../../members/refusal.ts'

/**
 * The texts that screens share. To add a language, add a file of this shape, list it in choose.ts, and add the language to
 * the `texts` of each screen's folder: the compiler names those that lack it. The server fills in
 * the {names}, except {store}, {name} and {role} of an invitation, which only the browser can ask for.
 */
export type Language = {
  /** BCP 47, for the page and for dates. */
  readonly tag: 'en' | 'es'
  readonly direction: 'ltr' | 'rtl'
  /** The language's own name for itself. */
  readonly name: string
  readonly texts: Texts
}

type Texts = {
  readonly languages: string
  readonly signOut: string
  readonly time: string
  readonly browserOn: string
  readonly someBrowser: string

  readonly signIn: {
    readonly title: string
    readonly heading: string
    readonly about: string
    readonly button: string
    readonly through: string
    readonly needsScript: string
    readonly signUp: string
    readonly lost: string
  }

  readonly enrol: {
    readonly title: string
    readonly hasPasskey: string
    readonly signIn: string
    readonly join: string
    readonly invited: string
    readonly noPassword: string
    readonly recover: string
    readonly recoverAbout: string
    readonly button: string
    readonly joinAs: string
    readonly needsScript: string
  }

  readonly account: {
    readonly title: string
    readonly stores: string
    readonly youAre: Readonly<Record<Role, string>>
    readonly passkeys: string
    readonly made: string
    readonly madeAndUsed: string
    readonly remove: string
    readonly passkeyName: string
    readonly passkeyExample: string
    readonly addPasskey: string
    readonly provider: string
    readonly connected: string
    readonly notConnected: string
    readonly connect: string
    readonly disconnect: string
    readonly sessions: string
    readonly here: string
    readonly session: string
    readonly usedFrom: string
    readonly end: string
    readonly mails: string
    readonly alerts: Readonly<Record<AlertKind, string>>
    readonly saveMails: string
  }

  readonly team: {
    readonly title: string
    readonly you: string
    readonly since: string
    readonly roleOf: string
    readonly changeRole: string
    readonly lostPasskey: string
    readonly remove: string
    readonly open: string
    readonly newPasskey: string
    readonly until: string
    readonly withdraw: string
    readonly invite: string
    readonly name: string
    readonly email: string
    /** Instead of `email`, where mails are sent. */
    readonly emailMailed: string
    readonly role: string
    readonly makeLink: string
    readonly roles: Readonly<Record<Role, string>>
    readonly describeRole: Readonly<Record<Role, string>>
  }

  readonly wallets: {
    readonly title: string
    readonly waiting: string
    readonly unclaimed: string
    readonly unclaimedAbout: string
    readonly unclaimedProven: string
    readonly unclaimedCustodial: string
    readonly inUse: string
    readonly none: string
    readonly elsewhere: string
    readonly proven: string
    readonly unproven: string
    readonly askUse: string
    readonly askRetire: string
    readonly askedBy: string
    readonly askedByUntil: string
    readonly compare: string
    readonly staysInUse: string
    readonly confirm: string
    readonly refuse: string
    readonly recent: string
    readonly recentAbout: string
    readonly keyEnough: string
    readonly revoke: string
    readonly before: string
    readonly undone: string
    readonly cancelOther: string
    readonly cancelIt: string
    readonly goBack: string
    readonly stopUsing: string
    readonly who: string
    readonly whoLabel: string
    readonly choices: Readonly<Record<WalletChanges, string>>
    readonly save: string
    readonly look: string
    readonly known: string
    readonly toUse: string
    readonly toRetire: string
    readonly used: string
    readonly retired: string
    readonly confirmedBy: string
    readonly undoneBy: string
    readonly actor: Readonly<Record<Actor['type'], string>>
    readonly namedKey: string
  }

  readonly link: {
    readonly title: string
    readonly heading: string
    readonly join: string
    readonly recover: string
    readonly about: string
    readonly mailed: string
    readonly copy: string
    readonly copied: string
    readonly back: string
  }

  readonly failed: { readonly title: string; readonly back: string }
  readonly refusals: Readonly<Record<Reason, string>>
  readonly mistakes: Readonly<Record<'length' | 'characters' | 'email', string>>
  readonly problems: Readonly<
    Record<'cross_site' | 'rate_limited' | 'unavailable' | 'wrong_cell' | 'internal', string>
  >
  /** What the script says when a passkey does not come about. */
  readonly script: Readonly<Record<'unsupported' | 'unused' | 'known' | 'failed', string>>
}
