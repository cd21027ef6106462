import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { PaymentRequired, PaymentRequirements } from '@farthing/sdk'
import type { LightMyRequestResponse } from 'fastify'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { batcher } from '../../../src/chains/evm/batcher.ts'
import { openChain } from '../../../src/chains/evm/chain.ts'
import { followOnce } from '../../../src/chains/evm/follower.ts'
import { numberEvents } from '../../../src/checkouts/number-events.ts'
import { updateStatus } from '../../../src/checkouts/update-status.ts'
import { nodesOf } from '../../../src/config/settings.ts'
import type { Database, Transaction } from '../../../src/database/db.ts'
import { buryDead } from '../../../src/payments/evm/bury-dead.ts'
import { openListener } from '../../../src/payments/evm/credit-blocks.ts'
import { stepLane } from '../../../src/payments/evm/lane.ts'
import { makeBoundNonce } from '../../../src/payments/nonces.ts'
import { attackerAbi } from '../../support/chain/evm.ts'
import {
  encodeTransfer,
  newPayer,
  type Payer,
  type Signed,
  signAuthorization,
} from '../../support/chain/evm-payment.ts'
import { openShop, payTo, type Shop, type ShopOptions } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/** A payment that is signed but not yet presented. */
export type Prepared = {
  readonly checkoutId: string
  readonly payer: Payer
  readonly signed: Signed
  readonly header: string
}

type Options = Pick<ShopOptions, 'settlers' | 'network' | 'settings' | 'nodes'> & {
  readonly withoutBatcher?: boolean
  /** The gas of a block. */
  readonly blockGas?: bigint
}

export type Driven = Awaited<ReturnType<typeof openDriven>>

/**
 * A shop whose settling side moves only when the test says so: the test mines blocks, steps the lanes and follows the
 * chain, with the real functions. That makes "before our send" a line in the test rather than a matter of luck.
 */
export async function openDriven({ withoutBatcher = false, blockGas, ...options }: Options = {}) {
  const shop = await openShop({ ...options, blockTimeSeconds: null, worker: false })
  if (blockGas !== undefined) {
    await shop.chain.client.setBlockGasLimit({ gasLimit: blockGas })
    await shop.chain.mine()
  }
  if (withoutBatcher) await shop.chain.client.setCode({ address: batcher, bytecode: '0x' })
  const { ctx, signers } = shop
  const { network } = shop.chain
  const chain = openChain(network, nodesOf(ctx.config, network.id), ctx.now)
  const look = (tx: Transaction, ids: readonly string[], now: Date) => updateStatus(ctx, tx, ids, now)
  const listener = openListener(ctx, chain, look)
  const lanes = signers.map((signer) => ({ chain, signer, holder: 'driven', updateStatus: look }))

  const follow = async () => {
    while (await followOnce(ctx, chain, 'driven', listener));
    await numberEvents(ctx)
  }
  /** The lanes claim, simulate and send whatever they can. */
  const send = async () => {
    for (const lane of lanes) while (await stepLane(ctx, lane));
  }
  const mine = async (blocks = 1) => {
    await shop.chain.mine(blocks)
    await follow()
  }
  /** Lets enough time pass on the chain for what is in it now to be deep, and buries what is dead by then. */
  const bury = async () => {
    await shop.chain.pass(network.negativeSeconds)
    await follow()
    while ((await buryDead(ctx, chain, look)) > 0);
    await numberEvents(ctx)
  }
  const idle = async () => {
    await mine()
    await send()
  }

  let people = 0
  /** Each payment comes from a different client address, so that nobody is slowed down by another payer's failures. */
  const pay = ({ checkoutId, header }: Pick<Prepared, 'checkoutId' | 'header'>) =>
    shop.request({
      method: 'POST',
      url: `/api/v1/checkouts/${checkoutId}`,
      headers: { 'payment-signature': header },
      remoteAddress: `10.${(++people >> 16) & 255}.${(people >> 8) & 255}.${people & 255}`,
    })

  await idle()
  return {
    ...shop,
    ctx,
    engine: { chain, lanes, listener, look },
    follow,
    send,
    mine,
    bury,
    /** Lets the service make progress: mines a block and steps the lanes, which renews their sign of life. */
    idle,
    /** Creates checkouts, each with a payer who has this many units and has signed. */
    async prepare(count: number, units = 2_000_000n, options: SignOptions = {}): Promise<Prepared[]> {
      const payers = Array.from({ length: count }, newPayer)
      await shop.chain.mint(
        payers.map(({ address }) => address),
        units,
      )
      await follow()
      return await Promise.all(payers.map((payer) => prepareOne(shop, payer, options)))
    },
    prepareOne: (payer: Payer, options: SignOptions = {}) => prepareOne(shop, payer, options),
    pay,
    /** Presents payments and returns once all are claimed. Each answer resolves when its payment is settled. */
    async present(payments: readonly Prepared[]): Promise<Promise<LightMyRequestResponse>[]> {
      const answers = payments.map((payment) => pay(payment))
      const nonces = payments.map(({ signed }) => signed.authorization.nonce)
      await until('claimed', async () => (await countClaims(shop.ctx.db, nonces)) === nonces.length)
      return answers
    },
    /** Puts a stranger's transactions into the pool. */
    async submit(
      calls: readonly { to: Address; data: Hex; gas?: bigint }[],
      fees: Fees = {},
    ): Promise<Hex[]> {
      const hashes: Hex[] = []
      for (const { to, data, gas = 300_000n } of calls)
        hashes.push(
          await shop.chain.client.sendTransaction({ account: stranger, to, data, gas, chain: null, ...fees }),
        )
      return hashes
    },
  }
}

type Fees = { maxFeePerGas?: bigint; maxPriorityFeePerGas?: bigint }

/** The eighth account of the chain, which has ether. */
const stranger: Address = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'

type SignOptions = {
  readonly validSeconds?: number
  /** Whether the nonce is bound to the checkout. */
  readonly isBound?: boolean
  /** The contract wallet that pays; the payer is its owner. */
  readonly from?: Address
  /** Pays the checkout of this other payment, on the same terms, instead of a new one. */
  readonly rivalOf?: Prepared
}

async function prepareOne(
  shop: Shop,
  payer: Payer,
  { validSeconds = 300, isBound = false, from, rivalOf }: SignOptions = {},
): Promise<Prepared> {
  const checkoutId = rivalOf?.checkoutId ?? (await shop.create())
  const { accepted, resource } = rivalOf ? termsOf(rivalOf) : await readTerms(shop, checkoutId)
  const signed = await signAuthorization({
    key: payer.key,
    domain: shop.chain.domain,
    to: payTo,
    value: BigInt(accepted.amount),
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + validSeconds),
    ...(isBound && { nonce: makeBoundNonce(checkoutId, randomBytes(12)) }),
    ...(from && { from }),
  })
  const payload = { x402Version: 2, payload: signed, resource, accepted }
  return { checkoutId, payer, signed, header: Buffer.from(JSON.stringify(payload)).toString('base64') }
}

type Terms = { readonly accepted: PaymentRequirements; readonly resource: PaymentRequired['resource'] }

async function readTerms(shop: Shop, checkoutId: string): Promise<Terms> {
  const { accepts, resource } = await shop.require(checkoutId)
  const [accepted] = accepts
  assert(accepted)
  return { accepted, resource }
}

function termsOf({ header }: Prepared): Terms {
  return JSON.parse(Buffer.from(header, 'base64').toString())
}

async function countClaims(db: Database, nonces: readonly string[]): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    'select count(*)::int as count from authorizations where nonce = any($1)',
    [nonces],
  )
  return row?.count ?? 0
}

/** One transaction that settles authorizations from inside a contract. */
export function settleInside(attacker: Address, token: Address, signed: readonly Signed[]) {
  return runInside(
    attacker,
    signed.map((one) => ({ target: token, data: encodeTransfer(one) })),
  )
}

/** One transaction that makes all these calls, or none of them. */
export function runInside(attacker: Address, calls: readonly { target: Address; data: Hex }[]) {
  return {
    to: attacker,
    data: encodeFunctionData({ abi: attackerAbi, functionName: 'run', args: [calls] }),
    gas: 200_000n + 100_000n * BigInt(calls.length),
  }
}
