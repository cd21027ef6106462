import type { Database } from './db.ts'

/**
 * Periodic tasks, shared by all processes: one row per task. A run is leased, and only the attempt that leased it can
 * finish it, so a process that was paused past its lease cannot overwrite a later run's schedule.
 */
export async function runIfDue(
  db: Database,
  task: { name: string; everySeconds: number; leaseSeconds: number; run: () => Promise<void> },
): Promise<boolean> {
  const [lease] = await db.query<{ attempt: string }>(
    `insert into schedules as s (name, run_at, leased_until, attempt)
     values ($1, clock(), clock() + make_interval(secs => $2), 1)
     on conflict (name) do update set leased_until = excluded.leased_until, attempt = s.attempt + 1
       where s.run_at <= clock() and (s.leased_until is null or s.leased_until <= clock())
     returning attempt`,
    [task.name, task.leaseSeconds],
  )
  if (!lease) return false
  await task.run()
  await db.query(
    `update schedules set run_at = clock() + make_interval(secs => $3), leased_until = null
     where name = $1 and attempt = $2`,
    [task.name, lease.attempt, task.everySeconds],
  )
  return true
}
