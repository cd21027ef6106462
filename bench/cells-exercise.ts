/**
 * Runs the commands of docs/cells.md, in their order, with two cells on a local chain behind one HAProxy: `npm run
 * cells:test`. The first cell exists already. The second is added under load, drained, moved to another PostgreSQL by
 * replication and promotion, upgraded after the first, and killed and started again.
 *
 * It fails if the first cell ever fails a request, if the second fails one while it should be up, if an acknowledged
 * checkout is gone, or if a payment is lost or counted twice. The last line of output is JSON: `awayMs` is how long the
 * switch and the kill kept the cell away.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeNextVersion } from '../chaos/harness/upgrade.ts'
import { openDatabase } from '../server/src/database/db.ts'
import { freePort } from '../server/test/support/free-port.ts'
import { openProxy } from '../server/test/support/proxy.ts'
import { isServed, type Seen, type Shop, type SteadyLoad, startLoad } from './cells-load.ts'
import {
  controlDatabase,
  killMachine,
  type Machine,
  makeMachine,
  openShell,
  type Shell,
  writeSettings,
} from './cells-machine.ts'
import { payOnAndOn } from './cells-roll.ts'
import { cellWallets } from './cells-stand.ts'
import { say } from './figures.ts'
import { type Chain, countCalls, onChain, type Payer, units } from './pay-chain.ts'
import { type Load, pay } from './pay-load.ts'
import { openTill } from './pay-till.ts'
import { letRolesLogIn, onStands, type Stand, settingsFor } from './stand.ts'

/** Requests, to each cell. */
const perSecond = 20
const payersCount = 1_000
const paymentsAtOnce = 5
const payLimitMs = 120_000
const backMsMax = 60_000
/** How long a killed cell stays away. */
const lostMs = 3_000
const readsAtOnce = 16
const directory = 'farthing_directory'

const startedAt = performance.now()
const tell = (text: string) =>
  process.stderr.write(`[${Math.round((performance.now() - startedAt) / 1_000)} s] ${text}\n`)

await onStands(2, '128MB', (stands) =>
  onChain(async (chain) => {
    const closers: (() => Promise<unknown>)[] = []
    try {
      await play(chain, stands, closers)
    } finally {
      for (const close of closers.reverse()) await close()
    }
  }),
)
// Sockets of killed processes may still be closing.
process.exit()

type Block = { readonly machine: string; readonly commands: string }

/** The commands of each section of the page that are marked with a machine. */
function readSections(): ReadonlyMap<string, readonly Block[]> {
  const page = readFileSync(new URL('../docs/cells.md', import.meta.url), 'utf8')
  const sections = page.split(/^## /m).map((section) => {
    const blocks = [...section.matchAll(/^```sh elsewhere on-([\w-]+)\n([\s\S]*?)^```/gm)]
    const found = blocks.map(([, machine = '', commands = '']) => ({ machine, commands }))
    return [section.slice(0, section.indexOf('\n')), found] as const
  })
  return new Map(sections.filter(([, blocks]) => blocks.length > 0))
}

async function play(
  chain: Chain,
  stands: readonly Stand[],
  closers: (() => Promise<unknown>)[],
): Promise<void> {
  const sections = readSections()
  assert.deepEqual(
    [...sections.keys()],
    ['Add a cell', 'Drain a cell', 'Move a cell to another machine', 'Upgrade cell by cell', 'Lose a cell'],
  )
  const [standA, standB] = stands
  assert(standA && standB)
  const first = await makeMachine('cell-00', standA, portOf(standA))
  const second = await makeMachine('cell-01', standB, portOf(standB))
  const moved = await makeMachine(
    'new-01',
    { folder: join(standB.folder, 'new'), children: standB.children },
    await freePort(),
  )
  closers.push(() => controlDatabase(moved.database, 'stop').catch(() => {}))
  const machines = [first, second, moved]
  const maps = join(standA.folder, 'maps')
  await mkdir(maps)
  const proxy = await openProxy({ cells: [proxied('00', first)] })
  closers.push(() => proxy.close())
  const places = {
    'farthing_directory:PASSWORD@directory.internal:5432': `farthing@127.0.0.1:${first.database.port}`,
    'db1.internal:5432': `127.0.0.1:${second.database.port}`,
    'db2.internal:5432': `127.0.0.1:${moved.database.port}`,
    '/etc/haproxy': maps,
    '0xWALLET': cellWallets[1],
  }
  const shell = await openShell(machines, places, async () => {
    // The proxy needs the maps that the directory wrote.
    assert.match(readFileSync(join(maps, 'cells.map'), 'utf8'), /^01 cell_01$/m)
    await proxy.reload([proxied('00', first), proxied('01', second)])
  })
  closers.push(() => shell.close())
  const run = async (title: string, { machine, commands }: Block, on = machine): Promise<string> => {
    tell(`${title}: on ${on}`)
    const found = machines.find(({ name }) => name === on) ?? assert.fail(on)
    return await shell.run(found, commands.replaceAll(/^.*\bdoctor$/gm, untilHealthy))
  }
  const payers = await chain.fundedPayers(payersCount)

  const shopA = { tag: '00', apiKey: await setUpFirst(chain, stands, first, shell) }
  await untilServed(proxy.url, shopA)
  tell('the first cell runs')
  const loadA = startLoad(proxy.url, [shopA], perSecond)
  const stopping = new AbortController()
  const payingA = payOnAndOn(proxy.url, shopA, payers, paymentsAtOnce, stopping.signal)
  // It is read again at the end.
  payingA.catch((error) =>
    tell(
      `cell 00: ${error}\n${proxy
        .readLog()
        .match(/^.*Server cell_\w+\/\w+ is .*$/gm)
        ?.join('\n')}`,
    ),
  )

  await prepareMachine(chain, second, standB)
  let apiKey = ''
  let settler = ''
  for (const block of sections.get('Add a cell') ?? []) {
    const commands = block.commands.replace('0xSETTLER', settler)
    const printed = await run('Add a cell', { ...block, commands })
    settler ||= /^Settler (0x\w{40})$/m.exec(printed)?.[1] ?? ''
    apiKey ||= /\bsk_live_\w+/.exec(printed)?.[0] ?? ''
    if (/ migrate$/m.test(commands)) await letIn(second)
    if (/settler create/.test(commands)) await fund(chain, settler)
  }
  const shopB = { tag: '01', apiKey }
  const wave = openWaves(proxy.url, shopB, payers)
  const loadB = startLoad(proxy.url, [shopB], perSecond)
  const loads: Load[] = [await (await wave())()]

  for (const block of sections.get('Drain a cell') ?? []) {
    const printed = await run('Drain a cell', block)
    // A drained cell still sells.
    if (/drain 01/.test(block.commands)) {
      tell(printed.trim())
      loads.push(await (await wave())())
    }
  }

  const away: Away[] = []
  for (const block of sections.get('Move a cell to another machine') ?? []) {
    if (/stop farthing/.test(block.commands)) {
      const payments = (await wave())()
      away.push({ why: 'move', from: performance.now(), to: Infinity, payments })
    }
    await run('Move', block)
  }
  second.database = moved.database
  loads.push(await settleDown(away[0], loadB))

  const next = makeNextVersion(join(standA.folder, 'releases'))
  next.addMigration()
  for (const machine of [first, second]) {
    await symlink(next.root, join(machine.folder, 'opt/farthing-new'))
    for (const block of sections.get('Upgrade cell by cell') ?? []) await run('Upgrade', block, machine.name)
  }
  loads.push(await (await wave())())

  const payments = (await wave())()
  away.push({ why: 'lose', from: performance.now(), to: Infinity, payments })
  killMachine(second)
  await wait(lostMs)
  for (const block of sections.get('Lose a cell') ?? []) await run('Lose', block)
  loads.push(await settleDown(away[1], loadB))
  loads.push(await (await wave())())

  stopping.abort()
  const paid = [await payingA, loads]
  await judge(chain, proxy.url, [shopA, shopB], [loadA, loadB], away, paid)
}

/** The proxy started first, and checks once per second. */
async function untilServed(url: string, { apiKey }: Shop): Promise<void> {
  const since = performance.now()
  while ((await fetch(`${url}/api/v1/store`, { headers: { 'x-api-key': apiKey } })).status !== 200) {
    assert(performance.now() - since < backMsMax, 'the first cell does not serve')
    await wait(100)
  }
}

/** The page says to wait until everything is well. */
function untilHealthy(doctor: string): string {
  return `for i in $(seq 40); do if (${doctor}) > /dev/null; then break; fi; sleep 1; done\n${doctor}`
}

type Away = { readonly why: string; readonly from: number; to: number; readonly payments: Promise<Load> }

function portOf({ cluster }: Stand): number {
  return Number.parseInt(new URL(cluster.url('farthing')).port, 10)
}

function proxied(tag: string, { ports }: Machine) {
  return { tag, servers: ports.map((port) => `http://127.0.0.1:${port}`) }
}

/** The state before `migrate` in docs/deploying.md: an empty database, settings, the key for secrets. */
async function prepareMachine(
  chain: Chain,
  machine: Machine,
  { folder, cluster }: Stand,
  further: Readonly<Record<string, string>> = {},
): Promise<void> {
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 4, name: 'exercise' })
  await admin.query('create database farthing')
  if (further.CELL === '00') await admin.query(`create database ${directory}`)
  await admin.close()
  const nodes = [await countCalls(chain.url), await countCalls(chain.url)]
  await writeSettings(machine, {
    ...settingsFor(''),
    NETWORKS: 'BASE_MAINNET',
    BASE_MAINNET_RPC_URLS: nodes.map(({ url }) => url).join(','),
    SECRETS_KEY_FILE: join(folder, 'secrets.keys'),
    TRUSTED_PROXIES: '127.0.0.1',
    ...further,
  })
}

/** Sets up the first deployment and the directory that it adopts. Returns its store's key. */
async function setUpFirst(
  chain: Chain,
  [stand]: readonly Stand[],
  machine: Machine,
  shell: Shell,
): Promise<string> {
  assert(stand)
  const url = `postgres://farthing@127.0.0.1:${machine.database.port}/${directory}`
  await prepareMachine(chain, machine, stand, { CELL: '00', DIRECTORY_URL: url })
  const printed = await shell.run(
    machine,
    `farthing-admin migrate
farthing-admin directory migrate
farthing-admin directory adopt
farthing-admin settler create BASE_MAINNET --out /etc/farthing/settler.keys`,
  )
  const [, settler = ''] = /^Settler (0x\w{40})$/m.exec(printed) ?? []
  await fund(chain, settler)
  await letIn(machine)
  const told = await shell.run(
    machine,
    `farthing-admin settler add BASE_MAINNET ${settler}
farthing-admin store create --name 'First shop' --evm-wallet ${cellWallets[0]}
systemctl start farthing-work farthing-serve@8402 farthing-serve@8404`,
  )
  return /\bsk_live_\w+/.exec(told)?.[0] ?? assert.fail(told)
}

/** The roles get no passwords, because loopback is trusted here. */
async function letIn({ database }: Machine): Promise<void> {
  const url = `postgres://farthing@127.0.0.1:${database.port}/farthing`
  const db = openDatabase({ url, connections: 4, name: 'exercise' })
  await letRolesLogIn(db)
  await db.close()
}

async function fund(chain: Chain, address: string): Promise<void> {
  assert.match(address, /^0x\w{40}$/)
  await chain.ask('anvil_setBalance', [address, `0x${(10n ** 18n).toString(16)}`])
}

/** Prepares some payments while the cell is up. Returns a function that repeats them until they are paid. */
function openWaves(url: string, { apiKey }: Shop, payers: Payer[]): () => Promise<() => Promise<Load>> {
  const prepare = openTill(url, apiKey)
  return async () => {
    const ready = await prepare(payers.splice(0, paymentsAtOnce))
    return () => pay(ready, paymentsAtOnce, payLimitMs)
  }
}

/** Waits until the cell serves again and the payments in progress are paid. */
async function settleDown(away: Away | undefined, load: SteadyLoad): Promise<Load> {
  assert(away)
  const since = performance.now()
  while (!load.seen.some((one) => one.sentAt > since && isServed(one))) {
    assert(performance.now() - since < backMsMax, 'the cell does not serve again')
    await wait(20)
  }
  away.to = performance.now()
  return await away.payments
}

async function judge(
  chain: Chain,
  url: string,
  shops: readonly Shop[],
  steady: readonly SteadyLoad[],
  away: readonly Away[],
  paid: readonly (readonly Load[])[],
): Promise<void> {
  const [seenA = [], seenB = []] = await Promise.all(steady.map((load) => load.stop()))
  const isAway = (at: number) => away.some(({ from, to }) => at >= from - 1_000 && at <= to)
  // The answers after which a client repeats its request while the cell is away. The proxy answers 502 or 503, or
  // closes a connection on which it has answered before. A process that has just started on a busy machine may answer
  // 408.
  const lost = [
    ...seenA.filter((one) => !isServed(one)),
    ...seenB.filter(
      (one) => !isServed(one) && !(isAway(one.sentAt) && [0, 408, 502, 503].includes(one.status)),
    ),
  ]
  assert.equal(lost.length, 0, `${lost.length} requests were lost: ${JSON.stringify(lost.slice(0, 3))}`)
  const created = steady.flatMap((load) => load.created)
  for (let i = 0; i < created.length; i += readsAtOnce)
    await Promise.all(
      created.slice(i, i + readsAtOnce).map(async ({ tag, id }) => {
        const headers = { 'x-api-key': shops.find((shop) => shop.tag === tag)?.apiKey ?? '' }
        const answer = await fetch(`${url}/api/v1/checkouts/${id}`, { headers })
        assert.equal(answer.status, 200, `${id}: ${await answer.text()}`)
      }),
    )
  for (const [i, loads] of paid.entries()) {
    const answers = new Set(loads.flatMap((load) => [...load.answers.keys()]))
    assert.deepEqual([...answers], ['200'])
    const count = loads.reduce((sum, load) => sum + load.paid.length, 0)
    assert.equal(await chain.balance(cellWallets[i] ?? ''), units * BigInt(count))
  }
  say(
    JSON.stringify({
      requests: [seenA.length, seenB.length],
      refusedWhileAway: seenB.filter((one) => !isServed(one)).length,
      checkouts: created.length,
      payments: paid.map((loads) => loads.reduce((sum, load) => sum + load.paid.length, 0)),
      awayMs: Object.fromEntries(away.map(({ why, from, to }) => [why, awayMs(seenB, from, to)])),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    }),
  )
}

/** From the first request that was not served to the last. */
function awayMs(seen: readonly Seen[], from: number, to: number): number {
  const refused = seen.filter((one) => !isServed(one) && one.sentAt >= from - 1_000 && one.sentAt <= to)
  const times = refused.map(({ sentAt }) => sentAt)
  return times.length === 0 ? 0 : Math.round(Math.max(...times) - Math.min(...times))
}
