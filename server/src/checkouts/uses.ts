import type { Database } from '../database/db.ts'
import {
  keyOf,
  type Ownership,
  settlerOwnership,
  type Uses,
  walletOwnership,
} from '../directory/directory.ts'
import { listUsedSettlers, writeSettlersElsewhere } from '../payments/settlers/rows.ts'
import { writeElsewhere, writeReleased } from '../stores/wallets.ts'
import { findBusy, findPageEnd, findRecords, listRecords, type WalletRecord } from './use-rows.ts'

/** Wallets per statement. Those that are retired cost one look through what is unfinished, together. */
const walletsPerPage = 5_000

/** What this cell has to own in the directory. */
export function openUses(db: Database): Uses {
  const readSettlers = async () =>
    (await listUsedSettlers(db)).map(({ network, address }) => settlerOwnership(network, address))

  async function filterUsed(wallets: readonly WalletRecord[]): Promise<Ownership[]> {
    const retired = wallets.filter(({ isRetired }) => isRetired).map(({ payTo }) => payTo)
    const busy = retired.length > 0 ? await findBusy(db, retired) : new Set()
    return wallets
      .filter(({ isRetired, payTo }) => !isRetired || busy.has(payTo))
      .map(({ mode, family, payTo }) => walletOwnership(mode, family, payTo))
  }

  return {
    async *pages() {
      yield await readSettlers()
      let after: string | null = ''
      while (after !== null) {
        const page: string = after
        yield await filterUsed(await listRecords(db, page, walletsPerPage))
        after = await findPageEnd(db, page, walletsPerPage)
      }
    },
    async find(some) {
      const addresses = some.filter(({ kind }) => kind === 'wallet').map(({ address }) => address)
      const wallets = addresses.length > 0 ? await filterUsed(await findRecords(db, addresses)) : []
      const used = new Set([...wallets, ...(await readSettlers())].map(keyOf))
      return some.filter((each) => used.has(keyOf(each)))
    },
    async writeElsewhere(some, isElsewhere) {
      const of = (wanted: Ownership['kind']) => some.filter(({ kind }) => kind === wanted)
      const [wallets, settlers] = [of('wallet'), of('settler')]
      if (wallets.length > 0) await writeElsewhere(db, wallets, isElsewhere)
      if (settlers.length > 0) await writeSettlersElsewhere(db, settlers, isElsewhere)
    },
    async writeReleased(some) {
      const wallets = some.filter(({ kind }) => kind === 'wallet')
      if (wallets.length > 0) await writeReleased(db, wallets)
    },
  }
}
