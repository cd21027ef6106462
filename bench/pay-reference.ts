/**
 * The reference that `pay.ts` measures against: the stock x402 packages, combined as their documentation describes, in
 * their own process. A plain HTTP server has one priced resource; its facilitator runs in the same process and settles
 * from one key through viem, with viem's nonce manager. It polls for receipts every 50 ms, because viem's default of
 * 4 s would make it look slower than it can be.
 *
 * `pay.ts` starts it with its settings in the environment. It prints `listening` and its URL once it is up.
 */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { x402Facilitator } from '@x402/core/facilitator'
import {
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
} from '@x402/core/http'
import { x402ResourceServer } from '@x402/core/server'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server'
import { createWalletClient, http, publicActions } from 'viem'
import { nonceManager, privateKeyToAccount } from 'viem/accounts'
import { base } from 'viem/chains'

const pollingMs = 50
const network = 'eip155:8453'

const { REFERENCE_RPC_URL, REFERENCE_KEY, REFERENCE_PAY_TO, REFERENCE_ASSET, REFERENCE_UNITS } = process.env
assert(REFERENCE_RPC_URL && REFERENCE_KEY && REFERENCE_PAY_TO && REFERENCE_ASSET && REFERENCE_UNITS)

const account = privateKeyToAccount(REFERENCE_KEY as `0x${string}`, { nonceManager })
const client = createWalletClient({
  account,
  chain: base,
  transport: http(REFERENCE_RPC_URL),
  pollingInterval: pollingMs,
}).extend(publicActions)
// viem's types are narrower than the signer's: the signer accepts any contract, the client infers types from its ABI.
const signer = toFacilitatorEvmSigner({ ...client, address: account.address } as unknown as Parameters<
  typeof toFacilitatorEvmSigner
>[0])
const facilitator = new x402Facilitator().register(network, new FacilitatorScheme(signer))
const resources = new x402ResourceServer({
  verify: (payload, requirements) => facilitator.verify(payload, requirements),
  settle: (payload, requirements) => facilitator.settle(payload, requirements),
  getSupported: async () => facilitator.getSupported() as never,
}).register(network, new ServerScheme())
await resources.initialize()

const requirements = await resources.buildPaymentRequirements({
  scheme: 'exact',
  network,
  payTo: REFERENCE_PAY_TO,
  price: {
    asset: REFERENCE_ASSET,
    amount: REFERENCE_UNITS,
    extra: { name: 'USD Coin', version: '2' },
  },
  maxTimeoutSeconds: 300,
})

const server = createServer((request, response) => {
  answer(request, response).catch((error) => send(response, 500, { error: String(error) }))
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`listening http://127.0.0.1:${port}\n`)
})

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume()
  const header = request.headers['payment-signature']
  const resource = { url: `http://${request.headers.host}${request.url}`, description: '', mimeType: '' }
  const refuse = async (error: string) => {
    const required = await resources.createPaymentRequiredResponse(requirements, resource, error)
    response.setHeader('payment-required', encodePaymentRequiredHeader(required))
    send(response, 402, required)
  }
  if (typeof header !== 'string') return await refuse('Payment required')
  const payload = decodePaymentSignatureHeader(header)
  const matching = resources.findMatchingRequirements(requirements, payload)
  if (!matching) return await refuse('No matching payment requirements')
  const verified = await resources.verifyPayment(payload, matching)
  if (!verified.isValid) return await refuse(verified.invalidReason ?? 'invalid')
  const settled = await resources.settlePayment(payload, matching)
  response.setHeader('payment-response', encodePaymentResponseHeader(settled))
  send(response, settled.success ? 200 : 402, settled)
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
