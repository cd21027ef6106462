import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Stand } from './stand.ts'

const execute = promisify(execFile)
const here = new URL('../..', import.meta.url).pathname

/** The next version of the server: the same program with one more migration. */
export function makeNextVersion(folder: string): { readonly root: string; addMigration(): void } {
  const root = join(folder, 'next')
  for (const part of ['package.json', 'server', 'sdk', 'page'])
    cpSync(join(here, part), join(root, part), { recursive: true })
  mkdirSync(join(root, 'node_modules/@farthing'), { recursive: true })
  for (const name of readdirSync(join(here, 'node_modules')).filter((entry) => entry !== '@farthing'))
    symlinkSync(join(here, 'node_modules', name), join(root, 'node_modules', name))
  for (const name of ['server', 'sdk', 'page'])
    symlinkSync(join(root, name), join(root, 'node_modules/@farthing', name))
  const migrations = join(root, 'server/migrations')
  return {
    root,
    addMigration() {
      const number = `${readdirSync(migrations).length + 1}`.padStart(4, '0')
      const sql = `alter table checkouts add column added_by_${number} text;\ncreate index checkouts_${number} on checkouts (id) where status = 'OPEN';\n`
      writeFileSync(join(migrations, `${number}_rolling.sql`), sql)
    },
  }
}

/** Migrates under load, then replaces the processes one by one with the next version; or, back, with the old one. */
export async function rollOver(
  stand: Stand,
  next: ReturnType<typeof makeNextVersion>,
  isBack: boolean,
): Promise<void> {
  const { fleet } = stand
  if (!isBack) {
    next.addMigration()
    const main = join(next.root, 'server/src/main.ts')
    await execute(process.execPath, [main, 'migrate'], {
      env: { PATH: process.env.PATH ?? '', ...fleet.environment },
    })
  }
  for (const member of fleet.members) {
    await fleet.end(member, 'SIGTERM')
    fleet.start(member, isBack ? {} : { root: next.root })
    await fleet.untilReady(member)
  }
}
