/**
 * The cost per create of the database roles' rights: `npm run bench:roles -- --rounds 20`.
 *
 * Two databases on one server, each with its own `serve`: one with the rights of server/rights (grants, policies,
 * a trigger) and `farthing_serve`, one without any of them and a superuser. Rounds alternate. `ratio` is the
 * median over the rounds of PostgreSQL's processor time per create, with rights by without; the goal is at most 1.05.
 */
import { parseArgs } from 'node:util'
import { findPostgres } from './create-bare.ts'
import { createMany } from './create-load.ts'
import { median, round, say, whole } from './figures.ts'
import { watchSteal } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import { makeDatabase, makeStore, onStand, type Stand, settingsFor, startServer } from './stand.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '3' }, rounds: { type: 'string', default: '20' } },
})
const seconds = whole('seconds', options.seconds, 1, 60)
const rounds = whole('rounds', options.rounds, 1, 100)

await onStand('1GB', measure)

async function measure(stand: Stand): Promise<void> {
  const postgres = await findPostgres(stand.folder)
  const sides = await Promise.all([open(stand, true), open(stand, false)])
  for (const side of sides) await side.load('warm', Math.min(10, 5 * seconds))
  const stolen = watchSteal()
  const ratios: number[] = []
  const spent: [number, number][] = []
  for (let i = 0; i < rounds; i++) {
    const each: number[] = []
    // The order is reversed in every other round.
    for (const place of i % 2 === 0 ? [0, 1] : [1, 0]) {
      const side = sides[place]
      if (!side) continue
      await side.db.query('checkpoint')
      const before = cpuMs(postgres)
      const requests = await side.load(`r${i}`, seconds)
      each[place] = (cpuMs(postgres) - before) / requests
    }
    const [rights = 0, none = 1] = each
    ratios.push(rights / none)
    spent.push([rights, none])
    say(`round ${i + 1}: ${round(rights, 4)} ms with rights, ${round(none, 4)} ms without`)
  }
  const { stealPercent, warning } = stolen()
  for (const { db } of sides) await db.close()
  if (warning) say(warning)
  say(
    JSON.stringify({
      ratio: round(median(ratios), 3),
      ratios: ratios.map((ratio) => round(ratio, 3)),
      postgresCpuMsPerCreate: round(median(spent.map(([rights]) => rights)), 4),
      withoutRights: round(median(spent.map(([, none]) => none)), 4),
      stealPercent,
      seconds,
      rounds,
    }),
  )
}

async function open(stand: Stand, hasRights: boolean) {
  const { url, db } = await makeDatabase(stand.cluster, hasRights ? 'with_rights' : 'without_rights')
  if (!hasRights)
    await db.query(`do $$ declare each record; begin
      for each in select relname from pg_class where relrowsecurity loop
        execute format('alter table %I disable row level security', each.relname);
      end loop;
      drop trigger status_is_guarded on checkouts;
    end $$`)
  const environment = settingsFor(url)
  const key = await makeStore(db, environment, '0x70997970C51812dc3A010C7d01b50e0d17dc79C8')
  const serving = [await startServer(stand, 'serve', environment, { isSuperuser: !hasRights })]
  return {
    db,
    load: async (run: string, length: number) => (await createMany(serving, key, run, length)).requests,
  }
}
