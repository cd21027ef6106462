import assert from 'node:assert/strict'
import type { PaymentRequired } from '@farthing/sdk'
import { x402Facilitator } from '@x402/core/facilitator'
import { x402HTTPResourceServer, x402ResourceServer } from '@x402/core/server'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server'
import { createWalletClient, type Hex, http, publicActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { parseNode } from '../../../../src/config/parse.ts'
import { buildApp } from '../../../../src/http/app.ts'
import { openRails } from '../../../../src/payments/rails.ts'
import { openReadiness } from '../../../../src/payments/settlers/readiness.ts'
import { startWorker } from '../../../../src/worker.ts'
import { atEnd } from '../../../support/at-end.ts'
import { fundedKey, multicallAddress } from '../../../support/chain/evm.ts'
import { openFaultyNode } from '../../../support/faulty-node.ts'
import { payTo, type Shop } from '../../../support/shop.ts'
import { until } from '../../../support/watch.ts'

/** The parts of an answer that a client can see. */
export type Reply = {
  readonly status: number
  /** PAYMENT-REQUIRED and PAYMENT-RESPONSE, as sent. */
  readonly required: string | undefined
  readonly response: string | undefined
  readonly body: unknown
}

/** One item to pay for. */
export type Place = {
  readonly terms: PaymentRequired
  send(header?: string): Promise<Reply>
}

/** A server that sells something for one dollar, and the node between it and the chain. */
export type Side = {
  readonly node: Awaited<ReturnType<typeof openFaultyNode>>
  open(): Promise<Place>
  /** How many times, from now on, the server fails to learn the outcome of what it sent. */
  missOutcomes(times: number): void
}

const network = 'eip155:31337'

/**
 * Puts the real Multicall3 on the chain, because the stock facilitator calls functions that the stand-in lacks. viem
 * contains its code without exporting it. Calling a creation without sending it returns the code that would be deployed.
 */
export async function placeMulticall({ chain }: Shop): Promise<void> {
  const { href } = new URL('constants/contracts.js', import.meta.resolve('viem'))
  const { multicall3Bytecode } = (await import(href)) as { multicall3Bytecode: Hex }
  const { data } = await chain.client.call({ data: multicall3Bytecode })
  assert(data)
  await chain.client.setCode({ address: multicallAddress, bytecode: data })
}

/** Farthing: serve and work with their own node, on the database of a shop without a worker. */
export async function openOurs(shop: Shop): Promise<Side> {
  const node = await openFaultyNode(shop.chain.url)
  const ctx = { ...shop.ctx, config: { ...shop.ctx.config, nodes: { LOCAL: [parseNode(node.url)] } } }
  const app = buildApp(ctx, { isDraining: false })
  const worker = startWorker(ctx, shop.signers)
  atEnd(async () => {
    await worker.stop()
    await app.close()
  })
  let places = 0
  return {
    node,
    missOutcomes: (times) => node.failTimes('refused', times, 'eth_getLogs'),
    async open() {
      // Waits until the damage of the previous request is over.
      await until(
        async () => (await openReadiness(ctx, openRails(ctx))(network)) === null,
        'recovery from the previous request',
      )
      const id = await shop.create()
      const remoteAddress = `10.0.0.${++places}`
      const send = async (header?: string): Promise<Reply> => {
        const answer = await app.inject({
          method: 'POST',
          url: `/api/v1/checkouts/${id}`,
          headers: header === undefined ? {} : { 'payment-signature': header },
          // Bad payments slow down the client address they come from.
          remoteAddress,
        })
        return {
          status: answer.statusCode,
          required: answer.headers['payment-required']?.toString(),
          response: answer.headers['payment-response']?.toString(),
          body: answer.json(),
        }
      }
      const asked = await send()
      assert.equal(asked.status, 402)
      return { terms: asked.body as PaymentRequired, send }
    },
  }
}

/** The stock x402 server with its facilitator in the same process, as in upstream's examples. */
export async function openReference(shop: Shop): Promise<Side> {
  const node = await openFaultyNode(shop.chain.url)
  const account = privateKeyToAccount(fundedKey(6))
  const client = createWalletClient({
    account,
    chain: foundry,
    transport: http(node.url, { retryCount: 0 }),
    pollingInterval: 50,
  }).extend(publicActions)
  let missed = 0
  const wait = async (args: Parameters<typeof client.waitForTransactionReceipt>[0]) => {
    const receipt = await client.waitForTransactionReceipt(args)
    if (missed-- > 0) throw new Error('timed out')
    return receipt
  }
  // viem's types are narrower than the signer's: the signer takes any contract, while the client infers from its ABI.
  const signer = toFacilitatorEvmSigner({
    ...client,
    address: account.address,
    waitForTransactionReceipt: wait,
  } as unknown as Parameters<typeof toFacilitatorEvmSigner>[0])
  const facilitator = new x402Facilitator().register(network, new FacilitatorScheme(signer))
  const resources = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as never,
  }).register(network, new ServerScheme())
  const server = new x402HTTPResourceServer(resources, {
    'POST /pay': {
      accepts: {
        scheme: 'exact',
        network,
        payTo,
        price: { asset: shop.chain.token, amount: '1000000', extra: { name: 'USDC', version: '2' } },
        maxTimeoutSeconds: 300,
      },
      description: 'One dollar',
      mimeType: 'application/json',
    },
  })
  await server.initialize()

  const send = async (header?: string): Promise<Reply> => {
    const request = {
      adapter: {
        getHeader: (name: string) => (name.toLowerCase() === 'payment-signature' ? header : undefined),
        getMethod: () => 'POST',
        getPath: () => '/pay',
        getUrl: () => 'https://reference.example/pay',
        getAcceptHeader: () => 'application/json',
        getUserAgent: () => 'test',
      },
      path: '/pay',
      method: 'POST',
    }
    const result = await server.processHTTPRequest(request)
    assert(result.type !== 'no-payment-required')
    if (result.type === 'payment-error') return toReply(result.response)
    const { paymentPayload, paymentRequirements, declaredExtensions } = result
    const settled = await server.processSettlement(paymentPayload, paymentRequirements, declaredExtensions, {
      request,
    })
    return toReply(settled.success ? { status: 200, headers: settled.headers, body: {} } : settled.response)
  }
  return {
    node,
    missOutcomes(times) {
      missed = times
    },
    async open() {
      const asked = await send()
      return { terms: JSON.parse(Buffer.from(asked.required ?? '', 'base64').toString()), send }
    },
  }
}

function toReply({ status, headers, body }: { status: number; headers: object; body?: unknown }): Reply {
  const named = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))
  return { status, required: named.get('payment-required'), response: named.get('payment-response'), body }
}
