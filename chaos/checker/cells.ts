import type { Books, History, Violation } from './history.ts'

/** Kinds of rows that may be in only one cell's books. Each row gets a name that is the same in every cell. */
const owned: Readonly<Record<string, (books: Books) => readonly string[]>> = {
  wallet: ({ wallets }) => wallets,
  settler: ({ settlers }) => settlers.map(({ address }) => address),
  checkout: ({ checkouts }) => checkouts.map(({ id }) => id),
  authorization: ({ authorizations }) => authorizations.map(({ payer, nonce }) => `${payer} ${nonce}`),
  transfer: ({ credits }) =>
    credits.flatMap(({ isOrphaned, blockHash, logIndex }) => (isOrphaned ? [] : `${blockHash} ${logIndex}`)),
}

/**
 * I16: cells share only a chain, so no row of one cell's books is in another's. Together with I5 in each cell, this
 * means that money which reached a wallet counts once over all cells.
 */
export function checkCells({ books, neighbours = [] }: History): Violation[] {
  return neighbours.flatMap((neighbour) =>
    Object.entries(owned).flatMap(([what, namesOf]) => {
      const own = new Set(namesOf(books))
      const shared = namesOf(neighbour).filter((name) => own.has(name))
      return shared.map(
        (name): Violation => ({ invariant: 'I16', what: `${what} ${name} is in the books of two cells` }),
      )
    }),
  )
}
