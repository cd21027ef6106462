/** The chain of `pay.ts`: anvil with 2-second blocks, funded payers, their signatures, and reads from the chain. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer } from 'node:net'
import { encodeFunctionData, getAddress, type Hex, parseAbi } from 'viem'
import { type Authorization, digest, transferCalldata } from '../server/src/chains/evm/eip3009.ts'
import { aggregateCalldata, decodeAggregate, multicall } from '../server/src/chains/evm/multicall.ts'
import { recoverSigner, signDigest } from '../server/src/chains/evm/recover.ts'
import { type LocalChain, startLocalChain } from '../server/src/dev/local-chain.ts'
import { networks } from '../server/src/networks.ts'

/** The amount of every payment: 10 cents. */
export const units = 100_000n
/** More than one payment, because emptying a balance earns a gas refund and would make the transfer look cheaper. */
const fundedUnits = units * 10n
export const chainId = 8453
export const network = 'eip155:8453'
const blockTimeSeconds = 2
/** 60,000 gas each, and a transaction may use 16.7 million. */
const mintsPerTransaction = 250
/** All in one block: anvil loses transactions that do not fit into the current one, which holds 300 million gas. */
const mintsPerBlock = 12 * mintsPerTransaction
const readsPerCall = 1_000
/** The bench's own account, one of those that anvil signs for. */
const hand = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'

const base = networks.find(({ caip2 }) => caip2 === network)
assert(base?.family === 'EVM')
const { assets } = base
const [usdc] = assets
assert(usdc)
export const asset = getAddress(usdc.address)
const domain = { ...usdc.domain, chainId, verifyingContract: asset.toLowerCase() as Hex }
const tokenAbi = parseAbi([
  'function mint(address to, uint256 value) returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
])

export type Payer = { readonly key: Buffer; readonly address: Hex }
export type Receipt = { readonly gasUsed: bigint; readonly isGood: boolean; readonly logs: number }
export type Chain = Awaited<ReturnType<typeof openChain>>

/** Runs `work` on a new chain, and stops the chain afterwards. */
export async function onChain(
  work: (chain: Chain) => Promise<void>,
  hasTransactionCap = true,
): Promise<void> {
  const chain = await openChain(hasTransactionCap)
  try {
    await work(chain)
  } finally {
    await chain.close()
  }
}

async function openChain(hasTransactionCap: boolean) {
  const local: LocalChain = await startLocalChain({ chainId, blockTimeSeconds, assets, hasTransactionCap })
  const { url } = local
  const blocks = await watchBlocks(url)

  async function ask<Result>(method: string, params: readonly unknown[]): Promise<Result> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }

  async function receipt(hash: Hex): Promise<Receipt | null> {
    type Raw = { gasUsed: Hex; status: Hex; logs: unknown[] } | null
    const raw = await ask<Raw>('eth_getTransactionReceipt', [hash])
    return raw && { gasUsed: BigInt(raw.gasUsed), isGood: raw.status === '0x1', logs: raw.logs.length }
  }

  /** Sends from the bench's own account. */
  async function send({ to, data, gas }: { to: string; data: Hex; gas: bigint }): Promise<Hex> {
    return await ask<Hex>('eth_sendTransaction', [{ from: hand, to, data, gas: hex(gas) }])
  }

  /** Waits until a transaction of ours is mined. */
  async function mined(hash: Hex): Promise<Receipt> {
    let found = await receipt(hash)
    while (!found) {
      await blocks.next()
      found = await receipt(hash)
    }
    assert(found.isGood, `${hash} failed`)
    return found
  }

  async function balances(addresses: readonly string[]): Promise<bigint[]> {
    const found: bigint[] = []
    for (let i = 0; i < addresses.length; i += readsPerCall) {
      const calls = addresses.slice(i, i + readsPerCall).map((address) => ({
        target: asset,
        callData: encodeFunctionData({ abi: tokenAbi, functionName: 'balanceOf', args: [address as Hex] }),
      }))
      const data = aggregateCalldata(calls)
      const answer = await ask<Hex>('eth_call', [{ to: multicall, data }, 'latest'])
      found.push(...decodeAggregate(answer).map(({ returnData }) => BigInt(returnData)))
    }
    return found
  }

  return {
    url,
    blocks,
    ask,
    receipt,
    /** An account that can pay for gas. */
    async fundedKey(): Promise<Payer> {
      const account = newPayer()
      await ask('anvil_setBalance', [account.address, hex(1_000n * 10n ** 18n)])
      return account
    },
    async fundedPayers(count: number): Promise<Payer[]> {
      const payers = Array.from({ length: count }, newPayer)
      const sent: Hex[] = []
      for (let i = 0; i < count; i += mintsPerTransaction) {
        if (i % mintsPerBlock === 0) await Promise.all(sent.splice(0).map(mined))
        sent.push(await send(mintAll(payers.slice(i, i + mintsPerTransaction))))
      }
      await Promise.all(sent.map(mined))
      return payers
    },
    async balance(address: string): Promise<bigint> {
      return (await balances([address]))[0] ?? 0n
    },
    /** How many of these payers have paid, once each. */
    async countPaid(payers: readonly Payer[]): Promise<number> {
      const left = await balances(payers.map(({ address }) => address))
      return left.filter((balance) => balance === fundedUnits - units).length
    },
    /** The gas of one transfer in its own transaction, to a wallet that already holds the token. */
    async singleGas(payer: Payer, to: string): Promise<bigint> {
      const { authorization, signature } = sign(payer, to)
      const data = transferCalldata(authorization, signature)
      return (await mined(await send({ to: asset, data, gas: 200_000n }))).gasUsed
    },
    /** Waits until no transaction is pending, up to `blocksMax` blocks: a skipped nonce is never filled. */
    async settleDown(blocksMax: number): Promise<void> {
      for (let i = 0; i < blocksMax; i++) {
        const { pending } = await ask<{ pending: Hex }>('txpool_status', [])
        if (BigInt(pending) === 0n) return
        await blocks.next()
      }
    },
    async close(): Promise<void> {
      blocks.close()
      await local.stop()
    },
  }
}

function hex(number: bigint): Hex {
  return `0x${number.toString(16)}`
}

/** One transaction that mints tokens to each of these payers. */
function mintAll(payers: readonly Payer[]): { to: string; data: Hex; gas: bigint } {
  const calls = payers.map(({ address }) => ({
    target: asset,
    callData: encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [address, fundedUnits] }),
  }))
  return { to: multicall, data: aggregateCalldata(calls), gas: 100_000n + 60_000n * BigInt(calls.length) }
}

/** Uses libsecp256k1 for speed, because thousands of payments are signed before each stage. */
function newPayer(): Payer {
  const key = randomBytes(32)
  const message = Buffer.alloc(32, 1)
  const { r, s, yParity } = signDigest(message, key)
  const signature = Buffer.from(`${r.slice(2)}${s.slice(2)}0${yParity}`, 'hex')
  const address = recoverSigner(message, signature)?.address
  assert(address)
  return { key, address }
}

export function sign(payer: Payer, to: string): { authorization: Authorization; signature: Hex } {
  const authorization: Authorization = {
    from: payer.address,
    to: to.toLowerCase() as Hex,
    value: units,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + 300),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  }
  const { r, s, yParity } = signDigest(digest(domain, authorization), payer.key)
  return { authorization, signature: `${r}${s.slice(2)}${yParity === 0 ? '1b' : '1c'}` }
}

/** The PAYMENT-SIGNATURE header as the stock client builds it, valid for five minutes. */
export function paymentHeader(payer: Payer, accepted: { payTo: string }, url: string): string {
  const { authorization, signature } = sign(payer, accepted.payTo)
  const { value, validAfter, validBefore } = authorization
  const payload = {
    x402Version: 2,
    payload: {
      authorization: {
        ...authorization,
        from: getAddress(authorization.from),
        to: getAddress(authorization.to),
        value: `${value}`,
        validAfter: `${validAfter}`,
        validBefore: `${validBefore}`,
      },
      signature,
    },
    resource: { url, description: '', mimeType: 'application/json' },
    accepted,
  }
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}

type Blocks = {
  /** When the newest block arrived, by performance.now(). */
  readonly lastAt: () => number
  readonly next: () => Promise<void>
  readonly close: () => void
}

/** Subscribes to new blocks from anvil over a separate connection. */
async function watchBlocks(url: string): Promise<Blocks> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  let lastAt = performance.now()
  let waiting = Promise.withResolvers<void>()
  socket.onmessage = ({ data }) => {
    if (!String(data).includes('eth_subscription')) return
    lastAt = performance.now()
    const { resolve } = waiting
    waiting = Promise.withResolvers()
    resolve()
  }
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }))
  return { lastAt: () => lastAt, next: () => waiting.promise, close: () => socket.close() }
}

export type Counter = {
  readonly url: string
  readonly calls: () => ReadonlyMap<string, number>
  close(): void
}

/**
 * A proxy that counts the calls to a node. It only scans the bytes as they pass, because parsing HTTP would slow down
 * the side that makes the most calls. It can delay the node's answers.
 */
export async function countCalls(target: string, delayMs = 0): Promise<Counter> {
  const { hostname, port } = new URL(target)
  const calls = new Map<string, number>()
  const server = createServer((inward) => {
    const outward = connect(Number.parseInt(port, 10), hostname)
    let rest = ''
    inward.on('data', (chunk) => {
      const text = rest + chunk.toString('latin1')
      let end = 0
      for (const match of text.matchAll(/"method":"(\w+)"/g)) {
        const [whole, method = ''] = match
        calls.set(method, (calls.get(method) ?? 0) + 1)
        end = match.index + whole.length
      }
      // A name that is split between two chunks is found with the next chunk.
      rest = text.slice(Math.max(end, text.length - 64))
    })
    inward.pipe(outward)
    if (delayMs === 0) outward.pipe(inward)
    else outward.on('data', (chunk) => setTimeout(() => inward.writable && inward.write(chunk), delayMs))
    for (const socket of [inward, outward]) {
      socket.setNoDelay(true)
      socket.on('error', () => {
        inward.destroy()
        outward.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4096, resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => new Map(calls),
    close: () => server.close(),
  }
}
