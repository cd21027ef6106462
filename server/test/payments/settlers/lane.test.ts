/** Payments while the process that signs is killed, restarted, or refuses. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectToSigner } from '../../../src/chains/signers/connect.ts'
import { SignRefusedError } from '../../../src/chains/signers/signing.ts'
import { examine } from '../../../src/commands/doctor.ts'
import { openAllSigners, openLaneSigners } from '../../../src/commands/signer.ts'
import { openRemote } from '../../../src/payments/rails.ts'
import { openSteps } from '../../../src/payments/settlers/lane.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { newPayer, type Payer } from '../../support/chain/evm-payment.ts'
import { startWork, untilReady } from '../../support/client.ts'
import { type Running, startProcess } from '../../support/process.ts'
import { openShop, payTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const folder = await mkdtemp(join(tmpdir(), 'farthing-signer-'))
atEnd(() => rm(folder, { recursive: true, force: true }))
const keysFile = join(folder, 'settler.keys')
await writeFile(keysFile, fundedKey(1), { mode: 0o600 })
const shop = await openShop({ worker: false, settings: { LOG_LEVEL: 'info' } })
const [{ address } = assert.fail()] = shop.signers
const settings = { SIGNER_SOCKET: join(folder, 'socket'), SETTLER_KEYS_FILE: keysFile, NETWORKS: 'LOCAL' }
let signer: Running | null = null

test('a signer that is killed and restarted in the middle of payments loses none and doubles none', async () => {
  signer = await startProcess('signer', settings)
  const client = connectToSigner(settings.SIGNER_SOCKET)
  atEnd(() => client.close())
  startWork(shop, [openRemote(client, address)])
  await untilReady(shop, shop.chain.network.caip2)
  const ids: string[] = []
  const payers = Array.from({ length: 12 }, newPayer)
  await shop.chain.mint(
    payers.map((payer) => payer.address),
    1_000_000_000n,
  )
  const payOne = async (payer: Payer) => {
    const id = await shop.create()
    ids.push(id)
    const header = await shop.sign(id, payer)
    // 202 and 503 mean that the outcome is not known yet, or that nothing was claimed: the payer sends the same again.
    await until('the payment is settled', async () => (await shop.pay(id, header)).statusCode === 200)
  }
  for (let round = 0; round < 2; round++) {
    const paying = Promise.all(payers.slice(6 * round, 6 * round + 6).map(payOne))
    await until('a signature was given', async () => {
      const [{ count } = { count: 0 }] = await shop.ctx.db.query<{ count: number }>(
        'select count(*)::int from transactions',
      )
      return count > round
    })
    await signer?.kill('SIGKILL')
    await until('the lane waits', async () =>
      shop.logged.some(({ msg }) => String(msg).startsWith('the signer cannot be reached')),
    )
    signer = await startProcess('signer', settings)
    await paying
  }
  const statuses = await Promise.all(ids.map(async (id) => (await shop.read(id)).status))
  assert.deepEqual(new Set(statuses), new Set(['COMPLETED']))
  assert.equal((await shop.chain.transferLogs({ to: payTo })).length, ids.length)
  const sent = await shop.ctx.db.query<{ nonce: string }>('select nonce from transactions order by nonce')
  assert.deepEqual(
    sent.map(({ nonce }) => Number.parseInt(nonce, 10)),
    sent.map((_, i) => i),
  )
  assert(shop.logged.some(({ msg }) => msg === 'the signer can be reached again'))
  assert(!shop.logged.some(({ msg }) => /background task failed/.test(String(msg))))
})

test('doctor asks the signer whose keys it holds, says when it is away, and refuses to have the keys as well', async () => {
  const config = { ...shop.ctx.config, signerSocket: settings.SIGNER_SOCKET }
  const ctx = { ...shop.ctx, config }
  const look = async () =>
    (await examine(ctx, () => openAllSigners(ctx))).filter(({ what }) => what === 'LOCAL settlers')
  signer ??= await startProcess('signer', settings)
  assert.deepEqual(
    (await look()).map(({ fix }) => fix),
    [null],
  )
  await signer.kill('SIGKILL')
  const [away] = await look()
  assert.match(
    `${away?.says} ${away?.fix}`,
    /signer at \S+ cannot be reached: .*ECONNREFUSED\S* \S+ Start signer/,
  )
  const both = { ...ctx, config: { ...config, settlerKeysFile: keysFile } }
  await assert.rejects(openAllSigners(both), /SETTLER_KEYS_FILE must be empty where SIGNER_SOCKET is set/)
  await assert.rejects(openLaneSigners(both), /SETTLER_KEYS_FILE must be empty where SIGNER_SOCKET is set/)
})

test('a lane whose signer refuses is silent for half a minute, and one whose signer is away does not step', async () => {
  let now = new Date()
  const ctx = { ...shop.ctx, now: () => now }
  let isAway = true
  let steps = 0
  const run = openSteps(ctx, 'LOCAL', { address, isAway: () => isAway })
  const step = async () => {
    steps++
    throw new SignRefusedError('no')
  }
  assert.equal(await run(step), false)
  assert.equal(steps, 0)
  isAway = false
  for (let i = 0; i < 3; i++) assert.equal(await run(step), false)
  assert.equal(steps, 1)
  now = new Date(now.getTime() + 30_000)
  await run(step)
  assert.equal(steps, 2)
  assert.equal(await run(async () => true), false, 'it still rests')
  await assert.rejects(
    openSteps(ctx, 'LOCAL', { address, isAway: () => false })(async () => assert.fail('ours')),
    /ours/,
  )
})
