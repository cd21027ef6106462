import type { Config } from './config/settings.ts'
import type { Database } from './database/db.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/** What every operation may use. Created once, in main.ts. */
export type Context = {
  readonly config: Config
  readonly db: Database
  /** The directory that this cell shares with others. Absent: it is the only cell. */
  readonly directory?: Database
  readonly log: Log
  readonly metrics: Metrics
  /** The process's clock. Request handlers and loops call it and pass the time down; nothing else reads a clock. */
  readonly now: () => Date
}
