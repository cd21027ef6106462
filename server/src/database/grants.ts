import assert from 'node:assert/strict'

/**
 * Reads the grants of server/rights/grants.sql, so that what the roles must be able to do is written once: `migrate`
 * applies the file, then asks PostgreSQL for each of these rights. PostgreSQL only warns when a grant grants nothing.
 *
 * Statements are applied in order, a revoke takes back what was granted before it. Any other form is a mistake of ours.
 */
export type Privilege = {
  readonly role: string
  readonly kind: 'database' | 'schema' | 'table' | 'function'
  readonly object: string
  readonly privilege: string
  /** Null: the whole table. */
  readonly column: string | null
}

const form =
  /^(?<verb>grant|revoke) (?<privileges>.+?) on (?:(?<kind>schema|function|all tables in schema) )?(?<objects>\w+(?:, \w+)*) (?:to|from) (?<roles>\w+(?:, \w+)*)$/

/** `tables` is what "all tables in schema public" means. */
export function readGrants(sql: string, tables: readonly string[]): Privilege[] {
  let rights: Privilege[] = []
  for (const statement of listStatements(sql)) {
    const { verb, privileges, kind, objects, roles } =
      form.exec(statement)?.groups ?? assert.fail(`cannot read this grant: ${statement}`)
    assert(verb && privileges && objects && roles)
    const named = kind === 'all tables in schema' ? tables : objects.split(', ')
    const said: Privilege[] = roles.split(', ').flatMap((role) =>
      named.flatMap((object) =>
        listPrivileges(privileges).map(({ privilege, column }) => ({
          role,
          kind: kind === 'schema' || kind === 'function' ? kind : 'table',
          object,
          privilege,
          column,
        })),
      ),
    )
    if (verb === 'grant') rights.push(...said)
    else rights = rights.filter((right) => !said.some((taken) => takes(taken, right)))
  }
  return rights.filter(({ role }) => role !== 'public')
}

function listStatements(sql: string): string[] {
  return sql
    .replace(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.replace(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '')
}

/** "select, update (a, b)" names one right on the table, and one on each column. */
function listPrivileges(text: string): { privilege: string; column: string | null }[] {
  return [...text.matchAll(/(\w+)(?: \(([\w, ]+)\))?/g)].flatMap(([, privilege = '', columns]) =>
    (columns?.split(', ') ?? [null]).map((column) => ({ privilege, column })),
  )
}

function takes(taken: Privilege, right: Privilege): boolean {
  return (
    taken.role === right.role &&
    taken.kind === right.kind &&
    taken.object === right.object &&
    (taken.privilege === 'all' || taken.privilege === right.privilege) &&
    (taken.column === null || taken.column === right.column)
  )
}

export function describePrivilege({ role, kind, object, privilege, column }: Privilege): string {
  return `${role}: ${privilege}${column === null ? '' : ` (${column})`} on ${kind} ${object}`
}
