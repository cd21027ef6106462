import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { EndpointId } from '../../ids.ts'
import { readSecretsKeys } from '../../secrets/key-file.ts'
import type { Endpoint, Secret } from './endpoint.ts'
import { resealSecrets } from './seal-secrets.ts'

type Stored = Pick<Endpoint, 'id' | 'secrets'>

/** Limits memory, and how many statements wait at once. */
const endpointsPerBatch = 100
/**
 * If an endpoint changes during every pass, its secret is being rolled all the time, and the operator is told to run
 * this again.
 */
const passesMax = 10

/**
 * Seals the secrets of every endpoint with the first key, while `serve` and `work` run. Each endpoint is one statement,
 * which changes nothing if the secrets were rolled since they were read: the next pass finds them again. A process that
 * is killed leaves every row openable. Returns how many endpoints it changed.
 */
export async function resealEndpoints(ctx: Context): Promise<number> {
  let count = 0
  for (let pass = 0; pass < passesMax; pass++) {
    const { found, resealed } = await resealOnce(ctx)
    count += resealed
    if (found === resealed) break
  }
  return count
}

async function resealOnce(ctx: Context): Promise<{ found: number; resealed: number }> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const [key] = keys
  let found = 0
  let resealed = 0
  let last: EndpointId | '' = ''
  for (;;) {
    const batch: Stored[] = key ? await listSealedOtherwise(ctx.db, key.id, last, endpointsPerBatch) : []
    const end: Stored | undefined = batch.at(-1)
    if (!end) return { found, resealed }
    const written = await Promise.all(
      batch.map(({ id, secrets }) =>
        replaceSecrets(ctx.db, id, secrets, resealSecrets(keys, id, id, secrets)),
      ),
    )
    found += batch.length
    resealed += written.filter((isWritten) => isWritten).length
    last = end.id
  }
}

/** Endpoints after this one with a secret that this key has not sealed, deleted ones too. */
async function listSealedOtherwise(
  db: Database,
  keyId: string,
  after: EndpointId | '',
  limit: number,
): Promise<Pick<Endpoint, 'id' | 'secrets'>[]> {
  return await db.query(
    `select id, secrets from webhook_endpoints where id > $2
       and exists (select 1 from jsonb_array_elements(secrets) one where one->>'keyId' is distinct from $1)
     order by id limit $3`,
    [keyId, after, limit],
  )
}

/** Replaces an endpoint's secrets if they are still as they were read. One row at a time, so it can't deadlock. */
async function replaceSecrets(
  db: Database,
  endpointId: EndpointId,
  before: readonly Secret[],
  after: readonly Secret[],
): Promise<boolean> {
  const changed = await db.query(
    'update webhook_endpoints set secrets = $3 where id = $1 and secrets = $2 returning id',
    [endpointId, JSON.stringify(before), JSON.stringify(after)],
  )
  return changed.length > 0
}

/** How many endpoints have secrets without a seal (''), and how many have secrets sealed by each key. */
export async function countByKey(db: Database): Promise<{ keyId: string; endpoints: number }[]> {
  return await db.query(
    `select coalesce(one->>'keyId', '') as "keyId", count(distinct id)::int as endpoints
     from webhook_endpoints cross join lateral jsonb_array_elements(secrets) one group by 1 order by 1`,
  )
}
