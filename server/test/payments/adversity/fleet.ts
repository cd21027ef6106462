import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodePaymentResponseHeader } from '@x402/core/http'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { patienceMs } from '../../support/patience.ts'
import { type Running, startProcess } from '../../support/process.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { type Call, openGate } from './gate.ts'
import type { Answered } from './invariants.ts'

export type Reply = {
  readonly status: number
  readonly code: string
  readonly error: string
  readonly settlement: string | undefined
}

/**
 * The service as it runs in production: several `serve` processes and one or more `work` processes on one database and
 * one chain, called over real sockets. `look` sees every call before it reaches the node.
 */
export async function openFleet(options: {
  readonly serves: number
  readonly works?: number
  readonly settlers?: number
  readonly sockets?: number
  readonly look?: (call: Call) => Promise<void>
}) {
  const shop = await openShop({ worker: false, settlers: options.settlers ?? 1 })
  const { url } = await openGate(shop.chain.url, options.look)
  const folder = await mkdtemp(join(tmpdir(), 'farthing-keys-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  const keysFile = join(folder, 'keys')
  await writeFile(keysFile, shop.signers.map((_, i) => fundedKey(i + 1)).join('\n'))
  const environment = {
    DATABASE_URL: shop.databaseUrl,
    DATABASE_CONNECTIONS: '16',
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: url,
    MIGRATE_ON_START: 'false',
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }
  const agent = new Agent({
    keepAlive: true,
    maxSockets: Math.ceil((options.sockets ?? 200) / options.serves),
  })
  atEnd(() => agent.destroy())
  let serves: Running[] = []
  let works: Running[] = []
  let turn = 0
  const answers: Answered[] = []

  const start = async () => {
    serves = await Promise.all(
      Array.from({ length: options.serves }, () => startProcess('serve', environment)),
    )
    works = await Promise.all(
      Array.from({ length: options.works ?? 1 }, () =>
        startProcess('work', { ...environment, SETTLER_KEYS_FILE: keysFile }),
      ),
    )
  }
  /** Waits for a live lane: a killed lane is taken over only once its lease expires. */
  const untilReady = async () => {
    const live = () =>
      shop.ctx.db.query(
        `select 1 as one from settlers s join followers f on f.network = s.network and f.head_time is not null
         where s.balance_wei is not null and s.alive_at > clock() - interval '5 seconds'`,
      )
    await until('a live lane', async () => (await live()).length > 0)
  }

  /** Presents a payment to the next process in turn. */
  const pay = async (checkoutId: string, header: string): Promise<Reply> => {
    const base = serves[turn++ % serves.length]?.started.address
    const askedAt = new Date()
    const reply = await post(agent, `${base}/api/v1/checkouts/${checkoutId}`, header)
    const transaction =
      reply.status === 200 && reply.settlement !== undefined
        ? decodePaymentResponseHeader(reply.settlement).transaction
        : undefined
    answers.push({ checkoutId, status: reply.status, transaction, askedAt, answeredAt: new Date() })
    return reply
  }

  await start()
  await untilReady()
  return {
    ...shop,
    start,
    untilReady,
    pay,
    /** Pays as the documentation says: retries until an answer gives the payment's outcome. */
    async payUntilKnown(checkoutId: string, header: string): Promise<Reply> {
      const deadline = Date.now() + patienceMs
      for (;;) {
        const reply = await pay(checkoutId, header)
        const isKnown = ![202, 503].includes(reply.status) && reply.code !== 'payment_in_progress'
        if (isKnown || Date.now() > deadline) return reply
      }
    },
    answers,
    addresses: () => serves.map(({ started }) => started.address ?? ''),
    works: () => works,
    async killAll(): Promise<void> {
      await Promise.all([...serves, ...works].map((running) => running.kill('SIGKILL')))
    },
  }
}

function post(agent: Agent, url: string, header: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent, method: 'POST', headers: { 'payment-signature': header } })
    asked.once('error', reject)
    asked.once('response', async (response) => {
      try {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        const body = JSON.parse(Buffer.concat(chunks).toString())
        resolve({
          status: response.statusCode ?? 0,
          code: String(body.code ?? ''),
          error: String(body.error ?? body.detail ?? ''),
          settlement: response.headers['payment-response']?.toString(),
        })
      } catch (error) {
        reject(error)
      }
    })
    asked.end()
  })
}

/** Counts the replies by kind. */
export function tally(replies: readonly Reply[]): Record<string, number> {
  const kinds = replies.map(({ status, code, error }) => [status, code || error].join(' ').trim())
  return Object.fromEntries([...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length]))
}
