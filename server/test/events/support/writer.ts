/**
 * A process that creates checkouts with the server's own function, for many stores at once, and prints each id only after
 * the create was acknowledged. The parent may kill it at any time.
 */
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { openCreateCheckout } from '../../../src/checkouts/create.ts'
import { readConfig } from '../../../src/config/read.ts'
import type { Context } from '../../../src/context.ts'
import { openDatabase } from '../../../src/database/db.ts'
import { openLog } from '../../../src/log.ts'
import { openMetrics } from '../../../src/metrics.ts'
import { openAuthenticator } from '../../../src/stores/authenticate.ts'

const atOnce = 64
const { WRITER_KEYS = '' } = process.env
const keys = WRITER_KEYS.split(',')
const config = readConfig()
const db = openDatabase({ url: config.databaseUrl, connections: 4, name: 'writer' })
const ctx: Context = {
  config,
  db,
  log: openLog('silent'),
  metrics: openMetrics(),
  now: () => new Date(),
}
const authenticator = openAuthenticator(ctx)
const create = openCreateCheckout(ctx, authenticator)
process.stdout.write('up\n')

let turn = 0
// For each line on stdin, one batch of ids on stdout.
for await (const _ of createInterface({ input: process.stdin })) {
  turn++
  const made = await Promise.all(
    Array.from({ length: atOnce }, async () => {
      const key = keys[Math.floor(Math.random() * keys.length)]
      assert(key)
      const caller = await authenticator.authenticate(key, () => {})
      const body = {
        orderId: `${process.pid}-${turn}`,
        priceAmount: '1.00',
        priceCurrency: 'USD',
        expiresInSeconds: 300,
      }
      return (await create(caller, body, null, ctx.now())).id
    }),
  )
  await new Promise<void>((resolve) => process.stdout.write(`${made.join('\n')}\ndone\n`, () => resolve()))
}
