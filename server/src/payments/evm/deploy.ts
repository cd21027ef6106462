import { setTimeout as wait } from 'node:timers/promises'
import { readNextNonces } from '../../chains/evm/accounts.ts'
import { batcher, deployData, deployer, readHasBatcher } from '../../chains/evm/batcher.ts'
import { type Chain, readHasCode, readHead } from '../../chains/evm/chain.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import { SignerAwayError, SignRefusedError } from '../../chains/signers/signing.ts'
import type { Context } from '../../context.ts'
import type { AnySigner, Deployed } from '../rail.ts'
import { listSettlers } from '../settlers/rows.ts'
import { cappedFees } from './tend.ts'

/** The deployment uses about 130,000 gas. */
const deployGas = 200_000n
/** Together a minute: a transaction with fresh fees is usually mined within seconds. */
const looks = 30
const lookMs = 2_000

/**
 * Deploys the batcher, unless it is already there. Pays from the first of these keys that is not a settler on this
 * network, because a settler's lane would use the same account nonce.
 */
export async function deployBatcher(
  ctx: Context,
  chain: Chain,
  signers: readonly AnySigner[],
): Promise<Deployed> {
  const { id, name } = chain.network
  const done = { isDone: true, says: `The batcher is at ${batcher} on ${name}.` }
  if (await readHasBatcher(chain)) return done
  const refuse = (says: string): Deployed => ({ isDone: false, says })
  const [hasCode, hasDeployer] = await readHasCode(chain, [batcher, deployer])
  if (hasCode)
    return refuse(`The code at ${batcher} on ${name} is not the batcher’s. Use nodes of the real ${name}.`)
  if (!hasDeployer)
    return refuse(
      `${name} has no deterministic deployer at ${deployer}. Somebody must deploy that first (github.com/Arachnid/deterministic-deployment-proxy).`,
    )
  const signer = await findSigner(ctx, chain, signers)
  if (!signer)
    return refuse(
      `SETTLER_KEYS_FILE must hold the key of an account that is not a settler on ${id} and has some ${chain.network.nativeCurrency.symbol} there. Or send this transaction from any other wallet: to ${deployer}, value 0, data ${deployData}`,
    )
  const { head } = await readHead(chain, 0)
  const fees = head && cappedFees(chain.network, head.baseFee)
  if (!fees) return refuse(`Gas on ${name} costs more than this deployment pays. Try again later.`)
  const [account] = await readNextNonces(chain, [signer.address])
  if (!account?.isWitnessed)
    return refuse(`Too few nodes of ${name} agree about ${signer.address}. Try again later.`)
  const unsigned = {
    to: deployer,
    data: deployData,
    gas: deployGas,
    nonce: account.nonce,
    ...fees,
  }
  const signed = await signer.sign(chain, unsigned).catch((error: unknown) => {
    if (error instanceof SignRefusedError || error instanceof SignerAwayError) return error
    throw error
  })
  if (signed instanceof Error) return refuse(`Nothing was signed: ${signed.message}.`)
  const { hash, bytes } = signed
  await chain.rpc.send('eth_sendRawTransaction', [bytes])
  for (let i = 0; i < looks; i++) {
    if (await readHasBatcher(chain)) return done
    await wait(lookMs)
  }
  return refuse(`${hash} is not mined yet. Run this again later: it sends nothing once the batcher is there.`)
}

async function findSigner(
  ctx: Context,
  chain: Chain,
  signers: readonly AnySigner[],
): Promise<Signer | undefined> {
  const settlers = new Set((await listSettlers(ctx.db, chain.network.caip2)).map(({ address }) => address))
  return signers.filter((signer) => signer.family === 'EVM').find(({ address }) => !settlers.has(address))
}
