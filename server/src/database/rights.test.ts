import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describePrivilege, readGrants } from './rights.ts'

const read = (sql: string, tables: string[] = []) => readGrants(sql, tables).map(describePrivilege)

test('a grant names one right for each role, object, privilege and column', () => {
  assert.deepEqual(read('grant select, update (a, b) on one, two to x, y;').length, 12)
  assert.deepEqual(read('-- why\ngrant select,\n  update (a) on one\n  to x;'), [
    'x: select on table one',
    'x: update (a) on table one',
  ])
  assert.deepEqual(read('grant usage on schema public to x; grant execute on function f, g to x;'), [
    'x: usage on schema public',
    'x: execute on function f',
    'x: execute on function g',
  ])
})

test('a revoke takes back what was granted before it, and nothing else', () => {
  const sql = `grant select, insert on all tables in schema public to x, y;
    revoke insert on b from x; revoke execute on function f from public;`
  assert.deepEqual(read(sql, ['a', 'b']), [
    'x: select on table a',
    'x: insert on table a',
    'x: select on table b',
    'y: select on table a',
    'y: insert on table a',
    'y: select on table b',
    'y: insert on table b',
  ])
  assert.deepEqual(read(`${sql} revoke all on all tables in schema public from x, y;`, ['a', 'b']), [])
})

test('a statement of another form is refused instead of passed over', () => {
  for (const sql of ['alter table a owner to x;', 'grant x to y;', 'grant usage on sequence s to x;'])
    assert.throws(() => read(sql), /cannot read this grant/)
})
