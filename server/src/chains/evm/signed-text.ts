import { encodeFunctionData, hashMessage } from 'viem/utils'
import type { Hex } from '../hex.ts'
import { RpcUnavailableError, unwrap } from '../rpc.ts'
import type { Chain } from './chain.ts'
import { recoverSigner } from './recover.ts'
import { readSignature } from './signature.ts'

const abi = [
  {
    type: 'function',
    name: 'isValidSignature',
    stateMutability: 'view',
    inputs: [{ type: 'bytes32' }, { type: 'bytes' }],
    outputs: [{ type: 'bytes4' }],
  },
] as const
/** The answer of a contract wallet to a valid signature (ERC-1271), padded to a word. */
const good = `0x1626ba7e${'0'.repeat(56)}`
/** Enough for wallets with many signers or passkeys, and a limit on the work that a wallet's code can cause a node. */
const gas = `0x${(5_000_000).toString(16)}`

/**
 * Whether a wallet signed this text with `personal_sign` (EIP-191). A contract wallet judges its signature itself
 * (ERC-1271). Another chain may have another contract at its address, with another owner, so every chain that has code
 * there must agree. On each chain `witnessesMin` nodes must answer, and all that answer must agree. `undeployed`: the
 * signature is a smart wallet's, and no chain has code at the address.
 */
export async function judgeText(
  chains: readonly Chain[],
  address: string,
  text: string,
  presented: string,
): Promise<'signed' | 'unsigned' | 'undeployed'> {
  const read = readSignature(presented)
  if ('refusal' in read) return 'unsigned'
  const { signature, hasContractForm } = read
  const digest = hashMessage(text)
  const signer = recoverSigner(Buffer.from(digest.slice(2), 'hex'), Buffer.from(signature.slice(2), 'hex'))
  if (signer?.address === address.toLowerCase()) return 'signed'
  const data = encodeFunctionData({ abi, args: [digest, signature] })
  const verdicts = await Promise.all(chains.map((chain) => askContract(chain, address, data)))
  if (verdicts.includes('bad')) return 'unsigned'
  if (verdicts.includes('good')) return 'signed'
  return hasContractForm && verdicts.includes('no code') ? 'undeployed' : 'unsigned'
}

async function askContract(chain: Chain, address: string, data: Hex): Promise<'good' | 'bad' | 'no code'> {
  const answers = await chain.rpc.batchAll([
    { method: 'eth_getCode', params: [address, 'latest'] },
    { method: 'eth_call', params: [{ to: address, data, gas }, 'latest'] },
  ])
  if (answers.length < chain.network.witnessesMin)
    throw new RpcUnavailableError(`Too few nodes of ${chain.network.name} answered.`)
  const verdicts = new Set(
    answers.map(([code, called]) => {
      if (unwrap<Hex>(code) === '0x') return 'no code'
      return called && 'result' in called && called.result === good ? 'good' : 'bad'
    }),
  )
  const [verdict = 'bad'] = verdicts
  return verdicts.size === 1 ? verdict : 'bad'
}
