import type { Source } from './tidy.ts'

/**
 * Which room owns which table. Any room may read any table below it, but only the owner inserts, updates or deletes
 * rows. Other rooms call a function of the owner.
 */
export const owners: Readonly<Record<string, string>> = {
  address_requests: 'refunds',
  alert_cursors: 'members',
  api_keys: 'stores',
  audit_accepts: 'audit',
  audit_changes: 'audit',
  audit_days: 'audit',
  audit_explanations: 'audit',
  audit_findings: 'audit',
  audit_runs: 'audit',
  authorizations: 'payments',
  blocks: 'chains',
  broadcasts: 'payments',
  buyer_receipt_counters: 'checkouts',
  buyer_receipts: 'checkouts',
  cell: 'database',
  challenges: 'members',
  checkouts: 'checkouts',
  credits: 'payments',
  decisions: 'checkouts',
  deliveries: 'events',
  delivery_attempts: 'events',
  deployment_mail_counts: 'mails',
  directory_state: 'directory',
  email_changes: 'members',
  event_bytes: 'events',
  event_counters: 'events',
  event_log: 'events',
  events: 'events',
  followers: 'chains',
  foreign_nonces: 'payments',
  granted_rights: 'database',
  idempotency_keys: 'checkouts',
  identities: 'members',
  invitations: 'members',
  kept_credits: 'payments',
  links: 'links',
  lookups: 'payments',
  mail_counts: 'mails',
  mail_recipients: 'mails',
  mails: 'mails',
  member_mail_counts: 'mails',
  members: 'members',
  memberships: 'members',
  movement_balances: 'movements',
  movement_closings: 'movements',
  movement_quarters: 'movements',
  movements: 'movements',
  movements_due: 'movements',
  network_looks: 'payments',
  node_faults: 'chains',
  node_hours: 'chains',
  node_limits: 'chains',
  passkeys: 'members',
  pasted_transactions: 'payments',
  payment_hints: 'payments',
  payment_mail_cursors: 'members',
  payment_notes: 'payments',
  rates: 'rates',
  recovery_codes: 'members',
  refund_totals: 'refunds',
  refunds: 'refunds',
  report_mappings: 'movements',
  reserved_amounts: 'payments',
  restores: 'payments',
  rollup_cursors: 'checkouts',
  rollup_days: 'checkouts',
  rollup_quarters: 'checkouts',
  schedules: 'database',
  schema_migrations: 'database',
  sessions: 'members',
  settler_gas: 'payments',
  settlers: 'payments',
  sign_ups: 'members',
  simulated_transfers: 'payments',
  store_gas: 'payments',
  stores: 'stores',
  token_accounts: 'payments',
  transaction_calls: 'payments',
  transactions: 'payments',
  truncated_logs: 'events',
  wallet_changes: 'stores',
  wallets: 'stores',
  webhook_endpoints: 'events',
}

/** Writes outside the owning room, each with its reason. */
export const sharedWrites: readonly {
  readonly file: string
  readonly table: string
  readonly because: string
}[] = [
  {
    file: 'checkouts/create.ts',
    table: 'events',
    because: 'a checkout, its event and its idempotency record are one statement',
  },
  {
    file: 'checkouts/rows.ts',
    table: 'events',
    because: 'a move and its event are one statement',
  },
  {
    file: 'checkouts/claim.ts',
    table: 'events',
    because: 'a claim, the move that it causes and their event are one statement',
  },
  {
    file: 'checkouts/claim.ts',
    table: 'authorizations',
    because:
      'an authorization may be inserted only for a checkout that the same statement has locked and moves',
  },
  {
    file: 'payments/credits/rows.ts',
    table: 'events',
    because: 'a credit is marked as announced in the statement that announces it',
  },
  {
    file: 'payments/transfers/reserve.ts',
    table: 'checkouts',
    because: 'page_version only: notifies open pages of the reservation that the same statement creates',
  },
  {
    file: 'payments/transfers/paste.ts',
    table: 'checkouts',
    because:
      'page_version only: notifies open pages of what the same statement writes about a named transaction',
  },
  {
    file: 'payments/svm/references.ts',
    table: 'checkouts',
    because: 'page_version only: notifies open pages of the reference that the same statement creates',
  },
  {
    file: 'payments/svm/accounts.ts',
    table: 'stores',
    because:
      'revision only: once a wallet becomes payable, creates must read their store again; payments cannot call stores',
  },
  {
    file: 'stores/wallets.ts',
    table: 'token_accounts',
    because:
      'registering a wallet records the token accounts it found, in the same transaction; stores cannot call payments',
  },
]

const writes = /\b(?:insert into|delete from|(?<!\b(?:for|key|do) )update)\s+([a-z_]+)/g

export function tablesWritten(code: string): string[] {
  const tables = [...code.matchAll(writes)].map(([, table = '']) => table)
  return [...new Set(tables)].filter((table) => table in owners)
}

export function findForeignWrites({ path }: Pick<Source, 'path'>, code: string): string[] {
  const [room = ''] = path.split('/')
  return tablesWritten(code)
    .filter((table) => owners[table] !== room)
    .filter((table) => !sharedWrites.some((shared) => shared.file === path && shared.table === table))
    .map(
      (table) => `writes ${table}, which belongs to ${owners[table]}/: call a function of that room instead`,
    )
}

/**
 * A checkout's status may be set in two ways: by `moveCheckouts` in `rows.ts`, with statuses that `arrow` has checked, or
 * by a statement that takes the status from its own `arrow`.
 */
export function findStatusChanges({ path }: Pick<Source, 'path'>, code: string): string[] {
  const found: string[] = []
  const sets = code.matchAll(
    /\bupdate checkouts\b(?:\s+(?:as\s+)?\w+)?\s+set\b([^`]*?)(?=\bfrom\b|\bwhere\b|`)/g,
  )
  for (const [, assignments = ''] of sets) {
    const value = /(?<![\w.])status\s*=\s*([^\s,]+)/.exec(assignments)?.[1]
    if (value === undefined) continue
    const name = /^'\$\{(\w+)\.to\}'$/.exec(value)?.[1]
    const isArrow = name !== undefined && new RegExp(`const ${name} = arrow\\(`).test(code)
    const isMove = path === 'checkouts/rows.ts' && value === 'i.status'
    if (!isArrow && !isMove)
      found.push(`sets a checkout's status to ${value}, which does not come from an arrow`)
  }
  return found
}

/** The only file that writes refunds, their totals and their events. */
const refundWriter = 'refunds/change.ts'
/** Columns of `refunds` from which no status follows: any file of the room may set them. */
const bookkeeping = new Set(['idempotency_key', 'body_hash', 'looked_at'])

/** A refund's facts, status, total and events are written in one place, which computes the status from the facts. */
export function findRefundWrites({ path }: Pick<Source, 'path'>, code: string): string[] {
  if (path === refundWriter) return []
  const found: string[] = []
  const other = `call addRefund or changeRefund of ${refundWriter} instead`
  if (tablesWritten(code).includes('refund_totals')) found.push(`writes refund_totals: ${other}`)
  if (/\b(?:insert into|delete from) refunds\b/.test(code))
    found.push(`adds or deletes rows of refunds: ${other}`)
  const sets = code.matchAll(/\bupdate refunds\b(?:\s+(?:as\s+)?(?!set\b)\w+)?\s+set\b([^`'"]*)/g)
  for (const [, rest = ''] of sets) {
    const [assignments = ''] = rest.split(/\b(?:from|where|returning)\b/)
    for (const [, column = ''] of assignments.matchAll(/(?:^|,)\s*\(?([\w$]*)/g))
      if (!bookkeeping.has(column)) found.push(`sets a refund's ${column}: ${other}`)
  }
  const isTold = path.startsWith('refunds/')
    ? /\b(appendEvent|newEvent)\b/.test(code)
    : /\bnewEvent\([^;]{0,150}?'refund\./.test(code)
  if (isTold) found.push(`writes a refund's event: ${other}`)
  return found
}
