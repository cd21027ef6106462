import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Hex, toHex } from 'viem'
import { openProvider } from '../../chains/support/provider.ts'
import { newNonce } from '../../support/chain/evm-payment.ts'
import type { Call } from '../../support/faulty-node.ts'
import { openShop } from '../../support/shop.ts'

/**
 * How often providers are asked one after another: to check the payment, to simulate what is sent, to send it, to find
 * its block, and to read that block. Each takes as long as the slower of two providers.
 */
const roundTripsMax = 5
/** A regular look at the chain may come in between, so the shortest of these counts. */
const payments = 6
/** Long enough that questions asked at the same time overlap. */
const latencyMs = 60

const providers = [await openProvider(''), await openProvider('')]
const opening = openShop({ network: 'BASE_MAINNET', blockTimeSeconds: null, nodes: providers })
const shop = await opening
for (const provider of providers) provider.latencyMs = latencyMs

type Head = { readonly number: Hex; readonly hash: Hex }

/** How many of the requests since a time were asked one after another. */
function countRoundTrips(since: number): number {
  const asked = providers
    .flatMap(({ journal }) => journal)
    .filter(({ from }) => from >= since)
    .toSorted((a, b) => a.from - b.from)
  const depths = new Map<(typeof asked)[number], number>()
  for (const one of asked) {
    const before = asked.filter(({ to }) => to !== null && to <= one.from)
    depths.set(one, 1 + Math.max(0, ...before.map((other) => depths.get(other) ?? 0)))
  }
  return Math.max(...depths.values())
}

const methodsOf = (calls: readonly Call[]) => calls.map(({ method }) => method)
const isPeek = (methods: readonly string[]) =>
  methods.includes('eth_getBlockByNumber') && methods.includes('eth_getTransactionReceipt')
const isSearch = (methods: readonly string[]) => methods.includes('eth_getLogs')

async function mineAtPeeks(calls: readonly Call[]): Promise<null> {
  if (isPeek(methodsOf(calls))) await shop.chain.mine()
  return null
}

async function payNew(begin = () => {}): Promise<string> {
  const id = await shop.create()
  const header = await shop.sign(id, await shop.fund())
  begin()
  const answer = await shop.pay(id, header)
  assert.equal(answer.statusCode, 200, answer.body)
  return id
}

test('from the signed request to the answer that it is paid, providers are asked five times one after another', async (t) => {
  for (const provider of providers) provider.answerRequest = mineAtPeeks
  const counts: number[] = []
  while (counts.length < payments) {
    let since = 0
    await payNew(() => {
      since = performance.now()
    })
    counts.push(countRoundTrips(since))
  }
  t.diagnostic(JSON.stringify(counts))
  assert(Math.min(...counts) <= roundTripsMax)
})

test('peeks ask one provider and search nothing; the first one after its block finds the payment', async () => {
  const peeksBefore = 4
  const peeks: number[] = []
  for (const provider of providers)
    provider.answerRequest = async (calls) => {
      if (!isPeek(methodsOf(calls))) return null
      peeks.push(performance.now())
      if (peeks.length === peeksBefore) await shop.chain.mine()
      return null
    }
  await payNew()
  assert.equal(peeks.length, peeksBefore)
  const [first = 0, last = 0] = [peeks[0], peeks.at(-1)]
  const searches = providers
    .flatMap(({ journal }) => journal)
    .filter(({ methods, from }) => isSearch(methods) && from > first && from < last)
  // One regular look at most, of both providers.
  assert(searches.length <= providers.length, `${searches.length} searches`)
})

for (const [what, lie] of Object.entries({
  'hides what we have sent': () => null,
  'names a block that does not exist': (head: Head) => ({ blockHash: newNonce(), blockNumber: head.number }),
  'names a block without it': (head: Head) => ({ blockHash: head.hash, blockNumber: head.number }),
}))
  test(`a provider that ${what} is not believed, and no payment is lost`, async () => {
    const [liar] = providers
    assert(liar)
    for (const provider of providers) provider.answerRequest = mineAtPeeks
    let head: Head | null = null
    let lies = 0
    liar.answerRequest = async (calls) => {
      await mineAtPeeks(calls)
      const { number, hash } = await shop.chain.client.getBlock()
      head = isPeek(methodsOf(calls)) ? { number: toHex(number), hash } : null
      return null
    }
    liar.answerCall = ({ method }) => {
      if (method !== 'eth_getTransactionReceipt' || head === null) return null
      lies++
      return { result: lie(head) }
    }
    let id = ''
    while (lies === 0) id = await payNew()
    liar.answerCall = () => null
    const [row] = await shop.ctx.db.query<{ credits: number; faults: number }>(
      `select (select count(*)::int from credits where checkout_id = $1) as credits,
         (select count(*)::int from node_faults) as faults`,
      [id],
    )
    assert.deepEqual(row, { credits: 1, faults: 0 })
  })
