import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { MemberId } from '../ids.ts'
import { announcePlace, type PlaceEvent } from './announce.ts'
import type { Member } from './member.ts'
import { toMember } from './rows.ts'

/**
 * Where a member's browser is: what it calls itself, and the network that it comes from. A place that a member was never
 * seen at is told to them and to the logs of their stores, once. Places are kept as hashes, because they only have to be
 * recognised. Who uses a browser of the same kind in the same network is at the same place.
 */
export type Place = {
  readonly userAgent: string
  readonly address: string
  /** The addresses that the network has, as far as that can be told from one of them. */
  readonly network: string
}

/** More than anybody moves between; beyond it the oldest is forgotten. */
const placesMax = 50

/** Returns whether the member was never seen there. */
export async function rememberPlace(tx: Transaction, memberId: MemberId, place: Place): Promise<boolean> {
  const hash = createHash('sha256').update(JSON.stringify([memberId, kindOf(place.userAgent), place.network]))
  return await addPlace(tx, memberId, hash.digest(), placesMax)
}

/** A browser's name and system without their versions, which change by themselves every few weeks. */
export function kindOf(userAgent: string): string {
  return userAgent.replaceAll(/[\d._]+/g, '')
}

export async function tellPlace(
  ctx: Context,
  tx: Transaction,
  memberId: MemberId,
  type: PlaceEvent,
  { address }: Place,
  now: Date,
): Promise<void> {
  const member = await readMember(tx, memberId)
  if (member) await announcePlace(ctx, tx, member, type, address, now)
}

/** Adds a place to those of a member, and forgets the oldest beyond `kept`. False if it was there. */
async function addPlace(tx: Transaction, memberId: MemberId, hash: Buffer, kept: number): Promise<boolean> {
  const rows = await tx.query(
    `update members set places = (places || $2::bytea)[greatest(1, cardinality(places) + 2 - $3):]
     where id = $1 and $2 <> all (places) returning id`,
    [memberId, hash, kept],
  )
  return rows.length > 0
}

async function readMember(tx: Transaction, memberId: MemberId): Promise<Member | null> {
  const [row] = await tx.query<Parameters<typeof toMember>[0]>(
    'select id, name, email, is_operator from members where id = $1',
    [memberId],
  )
  return row ? toMember(row) : null
}
