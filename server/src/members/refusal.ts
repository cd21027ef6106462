/** Everything that is refused to members, each with the sentence they read. */
export const refusals = {
  signed_out: 'You are signed out. Sign in to go on.',
  invitation: 'This link does not work: it was used, has expired or was replaced. Ask for a new one.',
  passkey: 'This passkey was not accepted. Try again, or use another one.',
  identity:
    'Nobody here is connected to that account. Sign in with your passkey, and connect it on your account’s page.',
  identity_taken: 'That account is connected to a member already.',
  provider: 'The identity provider’s answer was not accepted. Try again, or sign in with your passkey.',
  challenge: 'That took too long, or was answered before. Try again.',
  confirmation: 'Confirm this with your passkey.',
  no_passkey:
    'This takes a passkey, and you have none yet. Open a link that makes one: an owner has it, and dev prints it in its terminal.',
  last_passkey: 'This is your only passkey. Add another one before you remove it.',
  passkeys_max: 'You have as many passkeys as one member may have. Remove one first.',
  last_owner: 'The store would have no owner. Make somebody else an owner first.',
  role: 'Your role in this store does not include that. Ask an owner.',
  has_owner: 'The store has an owner, who invites people in the console.',
  has_members: 'The store has members. Its owner invites people in the console.',
  other_stores:
    'This member also belongs to a store that you do not own, so their passkeys are not yours to replace. Remove them here and invite them again.',
  operator:
    'This member runs the deployment, so their passkeys are not yours to replace. Ask whoever runs it with them.',
  is_member: 'You are a member of this store already.',
  members_max: 'The store has as many members and open invitations as one store may have.',
  change_over:
    'This change does not wait any more: it was confirmed, refused, replaced or withdrawn, or nobody confirmed it in time. Look at the wallets again.',
  undo_over: 'This change cannot be undone: it is more than 24 hours old, or was undone already.',
  wallet_address:
    'This is not the address of a wallet that can be paid here. Copy it from your wallet as a whole.',
  drained: 'New stores are not opened here. Go back to where you found this page, and start again.',
  sign_ups_max: 'Too many people have signed up today, here or from your network. Try again tomorrow.',
  exports_max:
    'Too many exports are running: each member may have one, and a store two. Wait until one is done, then try again.',
  not_found: 'There is nothing here, or it is not yours.',
  invalid: 'Some of what you entered cannot be used.',
} as const

export type Reason = keyof typeof refusals

/** Thrown where a member, or a stranger, asks for what they cannot have. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  /** Not called `code`: an error that has one counts as the database's. */
  readonly reason: Reason
  /** What exactly is wrong, in the member's language, if there is more to say than the reason. */
  readonly detail: string | undefined
  constructor(reason: Reason, options: ErrorOptions & { readonly detail?: string } = {}) {
    super(options.detail ?? refusals[reason], options)
    this.reason = reason
    this.detail = options.detail
  }
}
