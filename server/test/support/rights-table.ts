import { readFile } from 'node:fs/promises'
import type { Database } from '../../src/database/db.ts'

export const rightsFile = new URL('../../../docs/rights.md', import.meta.url).pathname

const roles = ['serve', 'work', 'console', 'audit'] as const
const verbs = ['select', 'insert', 'update', 'delete'] as const

/** docs/rights.md with its table as PostgreSQL itself knows it, in a migrated database. */
export async function generateRights(db: Database): Promise<string> {
  const text = await readFile(rightsFile, 'utf8')
  const found = /(\n## The table\n[^|]*)(?:\|.*\n)+/.exec(text)
  if (!found) throw new Error('docs/rights.md lost its table')
  return text.replace(found[0], `${found[1]}${await table(db)}\n`)
}

async function table(db: Database): Promise<string> {
  const columns = await db.query<{ table: string; column: string } & Record<string, boolean>>(
    `select c.relname as table, a.attname as column, ${roles
      .flatMap((role) =>
        verbs.map((verb) =>
          verb === 'delete'
            ? `has_table_privilege('farthing_${role}', c.oid, 'delete') as "${role} delete"`
            : `has_column_privilege('farthing_${role}', c.oid, a.attnum, '${verb}') as "${role} ${verb}"`,
        ),
      )
      .join(', ')}
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition order by c.relname, a.attnum`,
  )
  const rows = [...Map.groupBy(columns, ({ table }) => table)].map(([name, all]) => {
    const cells = roles.map((role) =>
      verbs
        .flatMap((verb) => {
          const some = all.filter((each) => each[`${role} ${verb}`])
          if (some.length === 0) return []
          if (some.length === all.length) return verb
          const left = all.filter((each) => !some.includes(each)).map(({ column }) => column)
          return left.length < some.length && left.length < 4
            ? `${verb} (all but ${left.join(', ')})`
            : `${verb} (${some.map(({ column }) => column).join(', ')})`
        })
        .join(', '),
    )
    return `| \`${name}\` | ${cells.join(' | ')} |`
  })
  return ['| Table | `serve` | `work` | console | `audit` |', '|---|---|---|---|---|', ...rows].join('\n')
}
