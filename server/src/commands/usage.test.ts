import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commands } from './table.ts'
import { parseCommand, UsageError } from './usage.ts'

const parse = (line: string) => parseCommand(line.split(' ').filter((word) => word !== ''))
const helpFor = (line: string) => {
  const typed = parse(line)
  assert('help' in typed, line)
  return typed.help
}

test('every command has help of its own, and is in the list unless only other commands type it', () => {
  const all = helpFor('')
  for (const command of commands) {
    assert(helpFor(`${command.words} --help`).startsWith(`farthing-admin ${command.words}`))
    assert(helpFor(`${command.words} -h`).includes(command.about.slice(1)))
    assert.equal(new RegExp(`^  ${command.words}( |$)`, 'm').test(all), !command.isInternal, command.words)
  }
  assert.equal(helpFor('--help'), all)
  assert.equal(helpFor('help'), all)
  assert.match(helpFor('store --help'), /^ {2}store create /m)
  for (const line of all.split('\n')) assert(line.length <= 110, line)
})

test('what is typed is divided into the command, what it is about, and its options', () => {
  const typed = parse('store suspend st_1 --reason spam --as Ann')
  assert('command' in typed)
  assert.equal(typed.command.words, 'store suspend')
  assert.deepEqual(typed.subjects, ['st_1'])
  assert.deepEqual({ ...typed.options }, { reason: 'spam', as: 'Ann' })
})

test('an unknown command, an option of another command, and too few or too many words are refused with what to type', () => {
  for (const [line, says] of [
    ['stor list', /^Unknown command: stor\. .*--help/],
    [
      'store',
      /^Unknown command: store\. There are store create, store list, .*: farthing-admin store --help$/,
    ],
    ['store remove', /^Unknown command: store remove\. There are store create, /],
    ['store list --name x', /^There is no option --name here\. Usage: farthing-admin store list$/],
    ['migrate --force', /^There is no option --force here\. Usage: farthing-admin migrate$/],
    ['key revoke', /^KEY is missing\. Usage: farthing-admin key revoke KEY/],
    ['member role st_1 mem_1', /^ROLE is missing\./],
    ['key revoke a b', /^b is one word too many\./],
    ['doctor now', /^now is one word too many\./],
    ['key rotate k --overlap-hours', /--overlap-hours.*missing\. Usage/],
    ['rollups rebuild --force=no', /--force.*Usage/],
  ] as const)
    assert.throws(
      () => parse(line),
      (error) => {
        assert(error instanceof UsageError)
        assert.match(error.message, says, line)
        return true
      },
    )
})
