/** All refusals, each with the sentence that members read. */
export const refusals = {
  signed_out: 'You are signed out. Sign in to continue.',
  invitation: 'This link does not work: it was used, has expired or was replaced. Ask for a new one.',
  code: 'This code does not work: it was used or replaced, or there is a typing mistake in it.',
  email_link:
    'This link does not work: it was used, has expired, was replaced, or is for another account. Ask for a new one on your account’s page.',
  email_links_max:
    'Enough links were sent today, for you, for your store or to this address. Try again tomorrow.',
  email_unknown:
    'No link can be sent yet: you have no store for real money whose wallet is proven and that is not suspended.',
  codes_max: 'Three of your codes were used within a day. Try again tomorrow, or ask another owner.',
  nothing_waits:
    'No passkey that was made with a recovery code is waiting, so there is nothing to refuse. Your codes still work.',
  operator_codes:
    'You run the deployment, so you have no recovery codes. Another operator can invite you again.',
  passkey_waits:
    'This passkey was made with a recovery code less than 24 hours ago, so it cannot confirm changes yet. Your account’s page says from when it can.',
  passkey: 'This passkey was not accepted. Try again, or use another one.',
  identity:
    'No member is connected to that account. Sign in with your passkey, and connect it on your account’s page.',
  identity_taken: 'That account is already connected to a member.',
  provider: 'The identity provider’s answer was not accepted. Try again, or sign in with your passkey.',
  challenge: 'That took too long, or was already answered. Try again.',
  confirmation: 'Confirm this with your passkey.',
  no_passkey:
    'This needs a passkey, and you have none yet. Make one with a link from an owner (dev prints one in its terminal) or with a recovery code.',
  last_passkey: 'This is your only passkey. Add another one before you remove it.',
  passkeys_max: 'You have reached the limit of passkeys. Remove one first.',
  last_owner: 'The store would have no owner. Make another member an owner first.',
  role: 'Your role in this store does not include that. Ask an owner.',
  has_owner: 'The store has an owner, who invites people in the console.',
  has_members: 'The store has members. Its owner invites people in the console.',
  other_stores:
    'This member also belongs to a store that you do not own, so you cannot replace their passkeys. Remove them here and invite them again.',
  operator: 'This member runs the deployment, so you cannot replace their passkeys. Ask another operator.',
  is_member: 'You are already a member of this store.',
  members_max: 'The store has reached the limit of members and open invitations.',
  change_over:
    'This change is no longer waiting: it was confirmed, refused, replaced or withdrawn, or was not confirmed in time. Look at the wallets again.',
  undo_over: 'This change cannot be undone: it is more than 24 hours old, or was already undone.',
  wallet_changed: 'The wallet was changed meanwhile, so nothing was done. Look at the wallets again.',
  wallet_address:
    'This is not the address of a wallet that can be paid here. Copy all of it from your wallet.',
  drained: 'New stores cannot be opened here. Go back to where you found this page, and start again.',
  sign_ups_max: 'Too many people have signed up today, here or from your network. Try again tomorrow.',
  exports_max:
    'Too many exports are running: each member may have one, and a store two. Wait until one is done, then try again.',
  not_found: 'There is nothing here, or it is not yours.',
  invalid: 'Some of your entries cannot be used.',
} as const

export type Reason = keyof typeof refusals

/** Thrown if a member or a stranger asks for something that they cannot have. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  /** Not called `code`: an error that has one is taken for a database error. */
  readonly reason: Reason
  /** Exactly what is wrong, in the member's language, if there is more to say than the reason. */
  readonly detail: string | undefined
  constructor(reason: Reason, options: ErrorOptions & { readonly detail?: string } = {}) {
    super(options.detail ?? refusals[reason], options)
    this.reason = reason
    this.detail = options.detail
  }
}
