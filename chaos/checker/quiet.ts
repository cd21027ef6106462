import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from 'pg'
import { ask } from './read-chain.ts'

/** I14. Waits until no work is left, for at most `withinMs`. Returns the remaining work as sentences. */
export async function untilQuiet(
  db: Client,
  url: string,
  network: string,
  withinMs: number,
): Promise<readonly string[]> {
  const giveUpAt = Date.now() + withinMs
  const [head = '0x0'] = await ask<string>(url, [['eth_blockNumber']])
  for (;;) {
    const undone = await findUndone(db, url, network, Number.parseInt(head, 16))
    if (undone.length === 0 || Date.now() > giveUpAt) return undone
    await wait(200)
  }
}

/**
 * Waits for the last writes on a stopped chain, for at most `withinMs`. Everything that became safe or final must be
 * written, and every event numbered and delivered.
 */
export async function untilDelivered(
  db: Client,
  url: string,
  network: string,
  withinMs: number,
): Promise<void> {
  const giveUpAt = Date.now() + withinMs
  const blocks = await ask<{ number: string } | null>(url, [
    ['eth_getBlockByNumber', 'safe', false],
    ['eth_getBlockByNumber', 'finalized', false],
  ])
  const reached = blocks.map((block) => Number.parseInt(block?.number ?? '0x0', 16))
  for (;;) {
    const { rows } = await db.query(
      `select 1 from credits where network = $1 and orphaned_at is null
         and ((safe_at is null and block_number <= $2) or (finalized_at is null and block_number <= $3))
       union all select 1 from events where sequence is null
       union all select 1 from movements_due
       union all select 1 from deliveries where state = 'pending' limit 1`,
      [network, ...reached],
    )
    if (rows.length === 0 || Date.now() > giveUpAt) return
    await wait(50)
  }
}

async function findUndone(db: Client, url: string, network: string, head: number): Promise<string[]> {
  const { rows } = await db.query<{ what: string; count: string }>(
    `select 'authorizations are unresolved' as what, count(*) from authorizations a
     where a.network = $1 and a.state in ('claimed', 'sent') and not exists (select 1 from credits k
       where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
         and k.orphaned_at is null)
     -- If no node knew its sender, a plain transfer that was taken back may return for half an hour.
     union all select 'checkouts are PROCESSING', count(*) from checkouts c where status = 'PROCESSING'
       and not exists (select 1 from credits k where k.checkout_id = c.id and k.network = $1 and k.nonce is null
         and k.sender is null and k.orphaned_at is not null and k.reversed_at is null)
     union all select 'checkouts are OPEN past their time', count(*) from checkouts
       where status = 'OPEN' and expires_at < now() - interval '5 seconds'
     union all select 'events have no sequence', count(*) from events where sequence is null
     union all select 'payments are not booked', count(*) from movements_due
     union all select 'deliveries are pending', count(*) from deliveries where state = 'pending'
     union all select 'blocks are unread', greatest(0, $2 - head_number) from followers where network = $1
     union all select 'nonces are unmined', sum(next_nonce - mined_nonce) from settlers where network = $1`,
    [network, head],
  )
  const undone = rows
    .filter(({ count }) => count !== '0' && count !== null)
    .map(({ what, count }) => `${count} ${what}`)
  const settlers = await db.query<{ address: string; next_nonce: string }>(
    'select address, next_nonce from settlers where network = $1',
    [network],
  )
  for (const { address, next_nonce } of settlers.rows) {
    const [mined = '0x0'] = await ask<string>(url, [['eth_getTransactionCount', address, 'latest']])
    if (`${Number.parseInt(mined, 16)}` !== next_nonce)
      undone.push(
        `settler ${address} is at nonce ${next_nonce}, but the chain at ${Number.parseInt(mined, 16)}`,
      )
  }
  return undone
}
