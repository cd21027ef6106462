import type { Node } from '../config/parse.ts'
import { type NodeLimits, type ProviderAnswer, type Rpc, type RpcCall, RpcUnavailableError } from './rpc.ts'

/**
 * The abilities of one node, tried by asking it alone, and those missing abilities that keep payments from completing.
 */
export type Probed = {
  readonly provider: string
  /** Tells the nodes of one provider apart, and contains no key. */
  readonly host: string
  readonly says: string
  readonly troubles: readonly Trouble[]
}

/** What is wrong with a node, and what its replacement must be able to do. */
export type Trouble = { readonly says: string; readonly wanted: string }

/** What a node can do, in the order of the report, and what it can't. */
export type Ability = { readonly facts: readonly string[]; readonly troubles: readonly Trouble[] }

type Probing<Chain> = {
  readonly nodes: readonly Node[]
  readonly open: (node: Node) => Chain
  /** One call of each frequent kind, and no more than fit into one request. */
  readonly usual: readonly RpcCall[]
  /** Finds out what a node of this family can do, once it is known how many calls it accepts. */
  readonly examine: (chain: Chain, told: ProviderAnswer) => Promise<Ability>
}

/** Probes every node. */
export async function probeNodes<Chain extends { readonly rpc: Rpc }>({
  nodes,
  open,
  usual,
  examine,
}: Probing<Chain>): Promise<Probed[]> {
  const probes = nodes.map(async (node): Promise<Probed> => {
    const named = { provider: node.provider, host: new URL(node.url).host }
    try {
      const { chain, told } = await askTogether(() => open(node), usual)
      const { facts, troubles } = await examine(chain, told)
      const limits = chain.rpc.listLimits().map(describeLimits)
      return {
        ...named,
        says: [...(limits.length > 0 ? limits : ['no limits found']), ...facts].join('; '),
        troubles,
      }
    } catch (error) {
      if (!(error instanceof RpcUnavailableError)) throw error
      const wanted = 'that answers'
      return { ...named, says: error.message, troubles: [{ says: error.message, wanted }] }
    }
  })
  return await Promise.all(probes)
}

/**
 * Asks everything in one request. If that is refused, each method is first asked twice in one request: otherwise one
 * method that must be alone would make all others look the same.
 */
async function askTogether<Chain extends { readonly rpc: Rpc }>(
  open: () => Chain,
  usual: readonly RpcCall[],
): Promise<{ readonly chain: Chain; readonly told: ProviderAnswer }> {
  const chain = open()
  const told = await askOnly(chain.rpc, usual)
  if (chain.rpc.listLimits().every(({ calls }) => Object.keys(calls).length === 0)) return { chain, told }
  const again = open()
  for (const [call] of Map.groupBy(usual, ({ method }) => method).values())
    if (call) await askOnly(again.rpc, [call, call])
  return { chain: again, told: await askOnly(again.rpc, usual) }
}

/** The answer of the only provider. */
export async function askOnly(rpc: Rpc, calls: readonly RpcCall[]): Promise<ProviderAnswer> {
  const [answer] = await rpc.askAll(calls, undefined, true)
  if (!answer) throw new RpcUnavailableError('The node did not answer.')
  return answer
}

/** If more methods than this have the same limit, they are not named: it is the node's limit. */
const namedMax = 3

/** For operators: what the node refused beyond this. */
export function describeLimits({ calls, blocksMax, perSecond }: NodeLimits): string {
  const byCount = [...Map.groupBy(Object.entries(calls), ([, count]) => count)].toSorted(([a], [b]) => b - a)
  const requests = byCount.map(([count, methods]) => {
    const names = methods.length > namedMax ? '' : ` of ${methods.map(([method]) => method).join(', ')}`
    return `${count} ${count === 1 ? 'call' : 'calls'} per request${names}`
  })
  return [
    ...requests,
    ...(blocksMax === null
      ? []
      : [`logs of ${blocksMax} ${blocksMax === 1 ? 'block' : 'blocks'} per question`]),
    ...(perSecond === null ? [] : [`${Math.floor(perSecond)} calls per second`]),
  ].join(', ')
}
