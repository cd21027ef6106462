import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberCommand } from '../../src/commands/members.ts'
import { enrolWith, openConsole, tokenOf } from '../http/console/support/console.ts'
import { operator } from '../support/operator.ts'
import { openStore } from '../support/store.ts'

const console = await openConsole()
const { farthing, url } = console
const run = (words: string, options = {}) => memberCommand(farthing.ctx, operator, words.split(' '), options)

test('`member invite` prints the link of a store’s first owner, `member list` shows them, `member remove` removes them', async () => {
  const store = await openStore(farthing, { evmWallet: null })
  assert.match(await run(`list ${store.id}`), /^The store has no members/)
  const said = await run(`invite ${store.id}`, { name: 'Olga', email: 'olga@shop.example' })
  const [link = ''] = said.split('\n')
  assert(link.startsWith(`${url}/enrol#`))
  assert.match(await run(`list ${store.id}`), /^mem_\w+ {2}owner {2}Olga {2}invited, until 20/)
  await enrolWith(console, tokenOf(link))
  const line = await run(`list ${store.id}`)
  assert.match(line, /^mem_\w+ {2}owner {2}Olga <olga@shop\.example>$/)
  for (const role of ['owner', 'viewer'])
    await assert.rejects(run(`invite ${store.id}`, { name: 'Eve', role }), /has an owner, who invites people/)
  assert.match(await run(`remove ${store.id} ${line.split(' ')[0]}`), /^Olga \(owner\) is not a member/)
  await run(`invite ${store.id}`, { name: 'Otto' })
})

test('an operator invites another role only to a store without members', async () => {
  const store = await openStore(farthing, { evmWallet: null })
  const [link = ''] = (await run(`invite ${store.id}`, { name: 'Vera', role: 'viewer' })).split('\n')
  await enrolWith(console, tokenOf(link))
  await assert.rejects(run(`invite ${store.id}`, { name: 'Eve', role: 'viewer' }), /has members/)
  await run(`invite ${store.id}`, { name: 'Olga', role: 'owner' })
})

test('`member role` changes a role but makes an owner only where there is none, `member operator` marks who runs the deployment', async () => {
  const store = await openStore(farthing, { evmWallet: null })
  const invite = async (name: string, role: string) => {
    const [link = ''] = (await run(`invite ${store.id}`, { name, role })).split('\n')
    await enrolWith(console, tokenOf(link))
    const line = (await run(`list ${store.id}`)).split('\n').find((each) => each.includes(name))
    return line?.split(' ')[0] ?? assert.fail(name)
  }
  const vera = await invite('Vera', 'viewer')
  const olga = await invite('Olga', 'owner')
  await assert.rejects(run(`role ${store.id} ${vera} owner`), /has an owner, who invites people and gives/)
  await assert.rejects(run(`role ${store.id} ${olga} viewer`), /would have no owner/)
  assert.match(
    await run(`role ${store.id} ${vera} manager`),
    /^Vera was viewer of st_\w+ and has the role manager/,
  )
  assert.match(await run(`role ${store.id} ${vera} manager`), /has the role manager already/)
  assert.match(await run(`operator ${vera} on`), /^Vera is an operator/)
  assert.match(await run(`list ${store.id}`), /Vera {2}operator$/m)
  await run(`remove ${store.id} ${olga}`)
  await run(`role ${store.id} ${vera} owner`)
  assert.match(await run(`operator ${vera} off`), /^Vera is not an operator any more/)
  const told = (await store.events()).slice(-5).map(({ type, actor }) => [type, actor?.type])
  assert.deepEqual(
    told,
    ['role_changed', 'operator_added', 'removed', 'role_changed', 'operator_removed'].map((type) => [
      `member.${type}`,
      'operator',
    ]),
  )
})

test('wrong commands say what is wrong', async () => {
  const store = await openStore(farthing, { evmWallet: null })
  const unknown = 'st_0001m7jb0tzeqa2p64q5j1kkyzdz'
  const wrong: readonly [words: string, options: object, says: RegExp][] = [
    ['list', {}, /^Usage: member invite STORE/],
    ['list shop', {}, /not a store id/],
    [`promote ${store.id}`, {}, /^Usage/],
    [`invite ${store.id}`, {}, /requires --name/],
    [`invite ${store.id}`, { name: 'a\u202eb' }, /--name/],
    [`invite ${store.id}`, { name: 'Olga', email: 'olga' }, /--email/],
    [`invite ${store.id}`, { name: 'Olga', role: 'boss' }, /owner, manager, developer, viewer/],
    [`invite ${unknown}`, { name: 'Olga' }, /no such store/],
    [`remove ${store.id} mem_1`, {}, /no such store or member/],
    [`role ${store.id} mem_1`, {}, /^Usage/],
    [`role ${store.id} mem_1 boss`, {}, /owner, manager, developer, viewer/],
    [`role ${store.id} mem_1 viewer`, {}, /no such store or member/],
    ['operator mem_1', {}, /^Usage: member operator MEMBER on/],
    ['operator mem_1 on', {}, /There is no member mem_1/],
  ]
  for (const [words, options, says] of wrong)
    await assert.rejects(run(words, options), { name: 'UsageError', message: says })
  const off = { ...farthing.ctx, config: { ...farthing.ctx.config, consoleUrl: '' } }
  await assert.rejects(
    memberCommand(off, operator, ['invite', store.id], { name: 'Olga' }),
    /set CONSOLE_URL first/,
  )
})
