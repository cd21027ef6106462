import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { address, lamports } from '@solana/kit'
import { createLedger, emptyAccount } from './ledger.ts'
import { createMethods, type Method, RpcError } from './methods.ts'
import { decodeTokenAccount, encodeMint, encodeTokenAccount, findTokenAccount, type Mint } from './tokens.ts'

export type LocalSvmOptions = {
  readonly now: () => Date
  /** null: blocks are made only on request. */
  readonly slotMs: number | null
  readonly mints: readonly Mint[]
  readonly genesisHash?: string
  readonly port?: number
  /** Blocks on top until a block counts as confirmed, and as finalized. */
  readonly confirmedAfter?: number
  readonly finalizedAfter?: number
}

type Call = { readonly method: string; readonly params: readonly unknown[] }
/**
 * What can go wrong with a call: `drop` answers a sendTransaction, but the transaction never lands; `refuse` answers
 * 503 and does nothing; `cut` executes the call and closes the connection instead of answering.
 */
type Fault = 'drop' | 'refuse' | 'cut'
type Meddle = (call: Call) => Fault | null | Promise<Fault | null>

/** SHA-256 of "Farthing's local Solana chain". */
const localGenesisHash = 'GuLKXAZVidPdHp6NsUHF4Qrzvs3PH9Rdd38MQh9i6u3H'
const requestBytesMax = 1_000_000

/**
 * A private Solana chain in this process, for `dev` and for tests: litesvm runs the real programs, and this folder adds
 * blocks, commitments and JSON-RPC. It listens on loopback only and stores nothing.
 *
 * How a real cluster differs:
 * - Many validators vote. Here `confirmed` and `finalized` are a number of blocks, and a fork happens only on request.
 *   A fork may take back confirmed blocks, which no real cluster has done so far.
 * - Leaders drop, reorder and pick by priority fee. Here the whole pool goes into the next block, in the order of
 *   sending, with no limit on a block's compute, and fees are burnt.
 * - Nodes lag behind each other. This is one node, and a simulation runs on its newest state whatever the requested
 *   commitment; only the blockhash is checked at that commitment.
 * - A node resends transactions that did not land. Here a transaction that cannot run in its block is gone.
 * - Here there are no subscriptions, address lookup tables, durable nonces, epochs, rent collection or request limits.
 * - Here `jsonParsed` covers only token accounts, and no transactions.
 */
export async function startLocalSvm(options: LocalSvmOptions) {
  const { now, slotMs, mints, genesisHash = localGenesisHash } = options
  const ledger = createLedger({
    now: () => now().getTime() / 1000,
    confirmedAfter: options.confirmedAfter ?? 1,
    finalizedAfter: options.finalizedAfter ?? 31,
  })
  let isHeld = false
  let meddle: Meddle = () => null
  const methods = createMethods(ledger, { genesisHash, send: ledger.enter })
  const dropping = createMethods(ledger, { genesisHash, send: () => {} })
  for (const mint of mints) ledger.plant(encodeMint(mint))

  const server = createServer((request, response) => {
    answer(request, response, async (call) => {
      const fault = await meddle(call)
      const method = (fault === 'drop' ? dropping : methods)[call.method]
      return { fault, method }
    }).catch((error) => response.destroy(error))
  })
  const url = await listen(server, options.port ?? 0)
  const timer = slotMs === null ? null : setInterval(() => ledger.mine(isHeld), slotMs)

  return {
    url,
    genesisHash,
    slot: () => ledger.at('processed').slot,

    /** Makes blocks now, in addition to those made on a timer. */
    mine(blocks = 1): void {
      for (let made = 0; made < blocks; made += 1) ledger.mine(isHeld)
    },
    /** Takes the newest blocks back. */
    fork: ledger.fork,
    /** Keeps sent transactions in the pool until they are released; blocks continue without them. */
    hold(): void {
      isHeld = true
    },
    release(): void {
      isHeld = false
    },
    /** Inspects each call before it runs. A promise delays the call. */
    meddle(by: Meddle | null): void {
      meddle = by ?? (() => null)
    },

    /**
     * Creates money: SOL for the owner, or units of a token in its associated token account, which is created too. It
     * takes effect at once, at every commitment and outside of blocks, so it is not for accounts that a fork will take
     * back.
     */
    async fund(
      owner: string,
      sums: { readonly lamports?: bigint; readonly token?: [mint: string, units: bigint] },
    ) {
      const wallet = address(owner)
      if (sums.lamports !== undefined) {
        const found = ledger.account(wallet)
        ledger.plant({
          ...emptyAccount(wallet),
          lamports: lamports((found.exists ? found.lamports : 0n) + sums.lamports),
        })
      }
      if (!sums.token) return
      const [mint, units] = sums.token
      const at = await findTokenAccount(owner, mint)
      const held = decodeTokenAccount(ledger.account(at))?.units ?? 0n
      ledger.plant(encodeTokenAccount(at, { mint: address(mint), owner: wallet, units: held + units }))
    },
    /** Units in the owner's associated token account in the newest block; null if that account does not exist. */
    async balance(owner: string, mint: string): Promise<bigint | null> {
      return decodeTokenAccount(ledger.account(await findTokenAccount(owner, mint)))?.units ?? null
    },
    plant: ledger.plant,
    account: (at: string) => ledger.account(address(at)),

    async stop(): Promise<void> {
      if (timer) clearInterval(timer)
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function listen(server: Server, port: number): Promise<string> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  find: (call: Call) => Promise<{ readonly fault: Fault | null; readonly method: Method | undefined }>,
): Promise<void> {
  let text = ''
  for await (const chunk of request) {
    text += chunk
    if (text.length > requestBytesMax) return void response.destroy()
  }
  const asked = JSON.parse(text)
  const answers: unknown[] = []
  for (const { id, method: name, params = [] } of [asked].flat()) {
    const { fault, method } = await find({ method: name, params })
    if (fault === 'refuse') return void response.writeHead(503).end()
    answers.push({ jsonrpc: '2.0', id, ...perform(name, method, params) })
    if (fault === 'cut') return void response.destroy()
  }
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(toJson(Array.isArray(asked) ? answers : answers[0]))
}

function perform(name: string, method: Method | undefined, params: readonly unknown[]) {
  if (!method) return { error: { code: -32601, message: `Method not found: ${name}` } }
  try {
    return { result: method(params) }
  } catch (error) {
    if (!(error instanceof RpcError)) return { error: { code: -32603, message: `Internal error: ${error}` } }
    return { error: { code: error.code, message: error.message, data: error.data } }
  }
}

/** Writes integers of any size as plain digits, as nodes do. */
function toJson(value: unknown): string {
  const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown }
  return JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? rawJSON(`${inner}`) : inner))
}
