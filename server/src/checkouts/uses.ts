import type { Database } from '../database/db.ts'
import { type Claim, settlerClaim, walletClaim } from '../directory/directory.ts'
import { keyOf, type Uses } from '../directory/uses.ts'
import {
  listSettlersElsewhere,
  listUsedSettlers,
  writeSettlersElsewhere,
} from '../payments/settlers/use-rows.ts'
import { listElsewhere, writeElsewhere, writeReleased } from '../stores/wallets.ts'
import { findBusy, findPageEnd, findRecords, listRecords, type WalletRecord } from './use-rows.ts'

/** Wallets per statement. Those that are retired cost one look through what is unfinished, together. */
const walletsPerPage = 5_000

/** What this cell has to own in the directory. */
export function openUses(db: Database): Uses {
  const readSettlers = async () =>
    (await listUsedSettlers(db)).map(({ network, address }) => settlerClaim(network, address))

  async function filterUsed(wallets: readonly WalletRecord[]): Promise<Claim[]> {
    const retired = wallets.filter(({ isRetired }) => isRetired).map(({ payTo }) => payTo)
    const busy = retired.length > 0 ? await findBusy(db, retired) : new Set()
    return wallets
      .filter(({ isRetired, payTo }) => !isRetired || busy.has(payTo))
      .map(({ mode, family, payTo }) => walletClaim(mode, family, payTo))
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
    async find(claims) {
      const addresses = claims.filter(({ kind }) => kind === 'wallet').map(({ address }) => address)
      const wallets = addresses.length > 0 ? await filterUsed(await findRecords(db, addresses)) : []
      const used = new Set([...wallets, ...(await readSettlers())].map(keyOf))
      return claims.filter((claim) => used.has(keyOf(claim)))
    },
    async listElsewhere() {
      const [wallets, settlers] = await Promise.all([listElsewhere(db), listSettlersElsewhere(db)])
      return [
        ...wallets.map((each): Claim => ({ kind: 'wallet', ...each })),
        ...settlers.map((each): Claim => ({ kind: 'settler', ...each })),
      ]
    },
    async writeElsewhere(claims, isElsewhere) {
      const of = (wanted: Claim['kind']) => claims.filter(({ kind }) => kind === wanted)
      const [wallets, settlers] = [of('wallet'), of('settler')]
      if (wallets.length > 0) await writeElsewhere(db, wallets, isElsewhere)
      if (settlers.length > 0) await writeSettlersElsewhere(db, settlers, isElsewhere)
    },
    async writeReleased(claims) {
      const wallets = claims.filter(({ kind }) => kind === 'wallet')
      if (wallets.length > 0) await writeReleased(db, wallets)
    },
  }
}
