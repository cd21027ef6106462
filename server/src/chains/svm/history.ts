import { reachedBy } from '../agree.ts'
import {
  askAgreed,
  callsPerDayMax,
  type History,
  type PastTransfer,
  type Span,
  TooManyTransfersError,
} from '../history.ts'
import { RpcUnavailableError } from '../rpc.ts'
import type { SvmChain } from './chain.ts'
import { cannotRead, findPayer, type Landed, landedCall, toLanded } from './landed.ts'
import { listSent } from './lists.ts'
import { readTime } from './status.ts'
import { findTokenAccount } from './transfer.ts'
import { readAnswer, whole } from './witnesses.ts'

const readPerRequest = 20
/** Memory: what was read is read once, for the transfers and then for the balances of a day. */
const keptMax = 100_000

/** A wallet's account for a token. */
type Account = { readonly wallet: string; readonly asset: string; readonly at: string }

/**
 * On Solana a wallet receives each token in one account, and nodes list the transactions that name an account. So this
 * finds every transfer, whether it carries a reference or not. What a transaction moved is what the account gained.
 */
export function openSvmHistory(chain: SvmChain, transfersMax: number): History {
  const { rpc, network } = chain
  const asked = { rpc, name: network.name, witnessesMin: network.witnessesMin }
  /** What each account’s transactions of a span did. */
  const days = new Map<string, readonly Told[]>()

  const read = async (hashes: readonly string[]): Promise<Told[]> => {
    const told: Told[] = []
    for (let i = 0; i < hashes.length; i += readPerRequest) {
      const some = hashes.slice(i, i + readPerRequest)
      const landed = await askAgreed(asked, some.map(landedCall), (outcomes) => {
        const each = some.map((hash, at) => {
          const one = toLanded(outcomes[at], hash)
          if (one) return { landed: one.landed, key: one.key }
          const isNone = readAnswer(outcomes[at], (raw) => raw === null) === true
          return isNone || cannotRead(outcomes[at], hash) ? { landed: null, key: 'none' } : null
        })
        if (each.some((one) => one === null)) return null
        return { fact: each.map((one) => one?.landed ?? null), key: each.map((one) => one?.key).join(';') }
      })
      told.push(...some.flatMap((hash, at) => (landed[at] ? { hash, landed: landed[at] } : [])))
    }
    return told
  }

  /** The transactions of an account in the span, and what they did. */
  const readDay = async ({ at }: Account, { from, before }: Span): Promise<readonly Told[]> => {
    const key = `${at} ${from.getTime()} ${before.getTime()}`
    const known = days.get(key)
    if (known) return known
    const { hashes, isAgreed } = await listSent(chain, at, from, { before, max: transfersMax })
    if (!isAgreed)
      throw new RpcUnavailableError(
        `The nodes of ${network.name} contradict each other about getSignaturesForAddress.`,
      )
    if (hashes.length > transfersMax) throw new TooManyTransfersError()
    const told = (await read(hashes)).filter(
      ({ landed: { time, isFailed } }) => !isFailed && time >= from && time < before,
    )
    if ([...days.values()].reduce((sum, { length }) => sum + length, 0) > keptMax) days.clear()
    days.set(key, told)
    return told
  }

  return {
    providers: rpc.providers,
    async findSpan(from, before) {
      const told = await rpc.askAll([{ method: 'getSlot', params: [{ commitment: 'finalized' }] }])
      const slots = told.flatMap(({ outcomes: [outcome] }) => readAnswer(outcome, whole) ?? [])
      const last = reachedBy(slots, network.witnessesMin)
      if (last === null) throw new RpcUnavailableError(`Too few nodes of ${network.name} answer getSlot.`)
      const { time } = await readTime(chain, last)
      if (time === null || time < before) return null
      days.clear()
      return { from, before, first: 0, last }
    },
    async readTransfers(wallets, span) {
      const callsBefore = rpc.countCalls()
      const accounts = await listAccounts(chain, wallets)
      const found = new Map<string, PastTransfer[]>()
      for (const account of accounts) {
        for (const { hash, landed } of await readDay(account, span))
          if (!found.has(hash)) found.set(hash, transfersOf(hash, landed, accounts))
        if (rpc.countCalls() - callsBefore > callsPerDayMax)
          throw new RpcUnavailableError(
            `A day of ${network.name} would take more than ${callsPerDayMax} calls.`,
          )
      }
      const all = [...found.values()].flat()
      if (all.length > transfersMax) throw new TooManyTransfersError()
      return all.toSorted((a, b) => a.block - b.block || (a.transaction < b.transaction ? -1 : 1))
    },
    async readBalance(wallet, asset, span, when) {
      const [account] = (await listAccounts(chain, [wallet])).filter((one) => one.asset === asset)
      const told = account ? days.get(`${account.at} ${span.from.getTime()} ${span.before.getTime()}`) : null
      return account && told ? balanceOf(account, told, when) : null
    },
    async readTransaction(transaction, wallets) {
      // Nodes refuse to look up what is no signature, and that must not stop an audit.
      if (!/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(transaction)) return []
      const [told] = await read([transaction])
      return told && !told.landed.isFailed
        ? transfersOf(transaction, told.landed, await listAccounts(chain, wallets))
        : []
    },
    countCalls: () => rpc.countCalls(),
  }
}

type Told = { readonly hash: string; readonly landed: Landed }

async function listAccounts({ network }: SvmChain, wallets: readonly string[]): Promise<Account[]> {
  const wanted = wallets.flatMap((wallet) => network.assets.map(({ address: asset }) => ({ wallet, asset })))
  return await Promise.all(
    wanted.map(async (one) => ({ ...one, at: await findTokenAccount(one.wallet, one.asset) })),
  )
}

/** What the accounts gained, each as one transfer, and what they lost beyond what others of them gained from them. */
function transfersOf(transaction: string, landed: Landed, accounts: readonly Account[]): PastTransfer[] {
  const common = { transaction, block: landed.slot }
  const gained = accounts.flatMap(({ wallet, asset, at }): PastTransfer[] => {
    const amount = landed.gainOf(at)
    return amount > 0n ? [{ ...common, asset, from: findPayer(landed, at), to: wallet, amount }] : []
  })
  const lost = accounts.flatMap(({ wallet, asset, at }): PastTransfer[] => {
    const told = gained.filter((one) => one.from === wallet && one.asset === asset)
    const amount = -landed.gainOf(at) - told.reduce((sum, one) => sum + one.amount, 0n)
    return amount > 0n ? [{ ...common, asset, from: wallet, to: '', amount }] : []
  })
  return [...gained, ...lost]
}

/**
 * What an account held before its first transaction of a day, or after its last. Null if it had none, or if the order of
 * those in one slot cannot be told.
 */
function balanceOf({ at }: Account, told: readonly Told[], when: 'before' | 'after'): bigint | null {
  const slots = told.map(({ landed }) => landed.slot)
  const slot = when === 'after' ? Math.max(...slots) : Math.min(...slots)
  const there = told.filter(({ landed }) => landed.slot === slot).map(({ landed }) => landed.unitsOf(at))
  const others = there.map((one) => (when === 'after' ? one.before : one.after))
  const ends = there
    .map((one) => one[when])
    .filter((units) => {
      const i = others.indexOf(units)
      if (i === -1) return true
      others.splice(i, 1)
      return false
    })
  return ends.length === 1 ? (ends[0] ?? null) : null
}
