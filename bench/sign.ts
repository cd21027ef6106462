/**
 * How long a lane waits for a signature, with the key in its own process and with `signer` behind its socket: `npm run
 * bench:sign`.
 *
 * Signs one payment, and a full batch through the batcher. Both sides take turns and get one request at a time, as from
 * a lane. The policy decodes every call in both. `signer` keeps the day's limit on disk, so its time includes that
 * write.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { generatePrivateKey } from 'viem/accounts'
import { openSigner } from '../server/src/chains/evm/signer.ts'
import { connectToSigner } from '../server/src/chains/signers/connect.ts'
import { networks } from '../server/src/networks.ts'
import { countFitting, toCall } from '../server/src/payments/evm/choose.ts'
import { openRemote } from '../server/src/payments/rails.ts'
import type { Authorized } from '../server/src/payments/rows.ts'
import { median, say } from './figures.ts'

const rounds = 400
const network = networks.find(({ id }) => id === 'BASE_MAINNET')
assert(network?.family === 'EVM')
const on = { network, chainId: 8_453 }
const folder = await mkdtemp(join(tmpdir(), 'farthing-bench-'))
const key = generatePrivateKey()
await writeFile(join(folder, 'keys'), key, { mode: 0o600 })
const socket = join(folder, 'socket')
const child = spawn(
  process.execPath,
  [new URL('../server/src/main.ts', import.meta.url).pathname, 'signer'],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      SIGNER_SOCKET: socket,
      SETTLER_KEYS_FILE: join(folder, 'keys'),
      NETWORKS: network.id,
      SETTLER_ETH_PER_DAY: '1000',
    },
  },
)
try {
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"signing"')) break
  const client = connectToSigner(socket, 60_000)
  await client.list()
  const local = openSigner(key)
  const remote = openRemote(client, local.address)
  assert(remote.family === 'EVM')
  const result: Record<string, number> = {}
  for (const payments of [1, countFitting(true)]) {
    const call = { ...toCall(true, Array.from({ length: payments }, makePayment)), maxFeePerGas: 21_000_000n }
    const times = { file: [] as number[], socket: [] as number[] }
    for (let nonce = 0; nonce < rounds; nonce++) {
      const transaction = { ...call, nonce, maxPriorityFeePerGas: 1_000_000n }
      const signed: unknown[] = []
      for (const [name, signer] of [
        ['file', local],
        ['socket', remote],
      ] as const) {
        const startedAt = performance.now()
        signed.push(await signer.sign(on, transaction))
        times[name].push(performance.now() - startedAt)
      }
      assert.deepEqual(signed[0], signed[1])
    }
    for (const [name, all] of Object.entries(times)) {
      const p99 = all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.99)] ?? 0
      say(`${payments} payments, ${name}: median ${round(median(all))} ms, p99 ${round(p99)} ms`)
      result[`${name}Ms${payments}`] = round(median(all))
    }
  }
  client.close()
  process.stdout.write(`${JSON.stringify(result)}\n`)
} finally {
  child.kill('SIGTERM')
  await rm(folder, { recursive: true, force: true })
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}

function makePayment(): Authorized {
  const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}` as const
  const authorization = {
    ...{ from: hex(20), to: hex(20), nonce: hex(32) },
    ...{ value: 1_000_000n, validAfter: 0n, validBefore: 2n ** 32n },
  }
  const transfer = {
    ...{ asset: network?.assets[0]?.address ?? '', authorization, isContract: false },
    signature: `${hex(32)}${'5a'.repeat(32)}1b` as const,
  }
  return { transfer, checkoutId: 'ch_0001m7f6egj0pj5kgr03g9syb7xk', sends: 0 } as unknown as Authorized
}
