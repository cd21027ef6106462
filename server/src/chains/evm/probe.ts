import type { Node } from '../../config/parse.ts'
import type { EvmNetwork } from '../../networks.ts'
import { type Ability, askOnly, type Probed, probeNodes, type Trouble } from '../probe.ts'
import type { ProviderAnswer, RpcOutcome } from '../rpc.ts'
import { blockCall, blockIn, type Chain, logsCall, openChain, type ToldBlock } from './chain.ts'
import { topics } from './eip3009.ts'
import { blocksPerLookMax, searchCalls } from './search.ts'
import { isGenuine, listLacking } from './witnesses.ts'

/**
 * Probes the nodes of an EVM chain, each by itself:
 *
 *   calls per request       the most frequent calls together; if that is refused, each method alone
 *   blocks per request      the logs of as many blocks as one look searches
 *   logs by block hash      required: a block counts only with its logs
 *   safe and finalized      required: without them nothing becomes final
 *   the header's hash       required: a header that does not hash to the block's hash proves nothing
 *   state at a block hash   required for as long as it takes to prove a payment dead
 *   pending                 not required, only reported
 */
export async function probeChain(
  network: EvmNetwork,
  nodes: readonly Node[],
  now: () => Date,
): Promise<Probed[]> {
  const [{ address }] = network.assets as [EvmNetwork['assets'][number]]
  return await probeNodes({
    nodes,
    open: (node) => openChain(network, [node], now),
    usual: [
      ...['latest', 'safe', 'finalized'].map(blockCall),
      { method: 'eth_getTransactionCount', params: [nobody, 'latest'] },
      { method: 'eth_getTransactionCount', params: [nobody, 'pending'] },
      { method: 'eth_getBalance', params: [nobody, 'latest'] },
      { method: 'eth_call', params: [{ to: address, data: decimalsCall }, 'latest'] },
      { method: 'eth_getTransactionReceipt', params: [`0x${'00'.repeat(32)}`] },
      {
        method: 'eth_getLogs',
        params: [{ address, fromBlock: 'latest', toBlock: 'latest', topics: [nothing] }],
      },
    ],
    async examine(chain, told) {
      const head = blockIn(told.outcomes[0])
      if (!head) return { facts: [], troubles: [{ says: 'has no newest block', wanted: 'that has one' }] }
      const found = [
        probeFinality(head, told),
        probeHeader(head),
        await probeLogs(chain, head),
        await probeState(chain, head, address),
        { facts: isAnswer(told.outcomes[4]) ? [] : ['no pending block, which is not needed'], troubles: [] },
      ]
      return {
        facts: found.flatMap(({ facts }) => facts),
        troubles: found.flatMap(({ troubles }) => troubles),
      }
    },
  })
}

const nobody = '0x0000000000000000000000000000000000000001'
const decimalsCall = '0x313ce567'
/** No log has this topic. */
const nothing = `0x${'00'.repeat(31)}01`
/** A sequencer may publish its blocks this late. If finality lags further, it does not work at all. */
const finalityHoursMax = 13

function probeFinality(head: ToldBlock, { outcomes }: ProviderAnswer): Ability {
  const tags = (['safe', 'finalized'] as const).map((tag, i) => ({ tag, block: blockIn(outcomes[i + 1]) }))
  const without = tags.filter(({ block }) => block === null).map(({ tag }) => tag)
  const wanted = `that answers eth_getBlockByNumber for the tags ${tags.map(({ tag }) => tag).join(' and ')}`
  if (without.length > 0)
    return {
      facts: [],
      troubles: [
        {
          says: `has no block for the tag ${without.join(' and ')}, so it confirms nothing as final`,
          wanted,
        },
      ],
    }
  const behind = tags.map(({ tag, block }) => ({ tag, seconds: block ? secondsBetween(block, head) : 0 }))
  const late = behind.filter(({ seconds }) => seconds > finalityHoursMax * 3_600)
  return {
    facts: [behind.map(({ tag, seconds }) => `${tag} after ${seconds} s`).join(', ')],
    troubles: late.map(({ tag, seconds }) => ({
      says: `its ${tag} block is ${Math.floor(seconds / 3_600)} hours behind its newest, so it confirms nothing as final`,
      wanted: 'that also follows the layer below',
    })),
  }
}

function probeHeader({ header }: ToldBlock): Ability {
  if (isGenuine(header)) return { facts: [], troubles: [] }
  const lacking = listLacking(header)
  const cannot = 'so the hash of a block cannot be computed and it is no witness'
  const wanted = 'that passes headers on whole'
  return {
    facts: [],
    troubles: [
      lacking.length > 0
        ? { says: `its headers lack ${lacking.join(', ')}, ${cannot}`, wanted }
        : {
            says: `its headers do not hash to the blocks’ hashes, ${cannot}`,
            wanted: `${wanted}; if all do the same, a fork has added a field: upgrade Farthing`,
          },
    ],
  }
}

async function probeLogs(chain: Chain, head: ToldBlock): Promise<Ability> {
  const concerns = { recipients: new Set([nobody] as const), authorizers: new Set([]) }
  const range = { above: Math.max(0, head.number - blocksPerLookMax), upTo: head.number }
  const search = searchCalls(chain, concerns, range)
  const { outcomes } = await askOnly(chain.rpc, [
    ...search,
    logsCall(chain, head.hash, Object.values(topics)),
  ])
  const troubles = outcomes.flatMap((outcome, i): Trouble[] => {
    if (!('error' in outcome)) return []
    const what = i < search.length ? 'of a range of blocks' : 'of one block by its hash'
    return [
      {
        says: `refuses to tell the logs ${what} (${outcome.error.message}), so no payment is seen`,
        wanted: `that answers eth_getLogs for the logs ${what}`,
      },
    ]
  })
  return { facts: [], troubles }
}

/** Blocks below the newest: far enough apart to find out with few calls how deep a node's state goes. */
const depths = [1, 16, 128, 256, 2_048, 16_384]

async function probeState(chain: Chain, head: ToldBlock, asset: string): Promise<Ability> {
  const numbers = depths.map((depth) => head.number - depth).filter((number) => number >= 0)
  const headers = await askOnly(chain.rpc, numbers.map(blockCall))
  const blocks = headers.outcomes.flatMap((outcome) => blockIn(outcome) ?? [])
  const told = await askOnly(
    chain.rpc,
    [head, ...blocks].map(({ hash }) => ({
      method: 'eth_call',
      params: [{ to: asset, data: decimalsCall }, { blockHash: hash }],
    })),
  )
  const isTold = (_: ToldBlock, i: number) => isAnswer(told.outcomes[i])
  const oldest = [head, ...blocks].findLast(isTold)
  const kept = oldest ? { blocks: head.number - oldest.number, seconds: secondsBetween(oldest, head) } : null
  const count = kept?.blocks ?? 0
  const fact = `state of the last ${count === 1 ? 'block' : `${count} blocks`}`
  const { negativeSeconds } = chain.network
  if (oldest === [head, ...blocks].at(-1)) return { facts: [`${fact} and more`], troubles: [] }
  if (kept && kept.seconds > negativeSeconds) return { facts: [fact], troubles: [] }
  return {
    facts: [],
    troubles: [
      {
        says: `has state of the last ${kept?.seconds ?? 0} s only, so payments that never happened can’t be proven dead`,
        wanted: `that answers eth_call at a block’s hash for more than ${negativeSeconds} s`,
      },
    ],
  }
}

function secondsBetween(older: ToldBlock, newer: ToldBlock): number {
  return (newer.time.getTime() - older.time.getTime()) / 1_000
}

function isAnswer(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'result' in outcome
}
