import type { Books, History, Violation } from './history.ts'

/** What can only be in one cell's books, each with a name that is the same in every cell. */
const owned: Readonly<Record<string, (books: Books) => readonly string[]>> = {
  wallet: ({ wallets }) => wallets,
  settler: ({ settlers }) => settlers.map(({ address }) => address),
  checkout: ({ checkouts }) => checkouts.map(({ id }) => id),
  authorization: ({ authorizations }) => authorizations.map(({ payer, nonce }) => `${payer} ${nonce}`),
  transfer: ({ credits }) =>
    credits.flatMap(({ isOrphaned, blockHash, logIndex }) => (isOrphaned ? [] : `${blockHash} ${logIndex}`)),
}

/**
 * I16: cells share a chain and nothing else, so what one has in its books the others do not: together with I5 in each
 * cell, money that reached a wallet counts once over all of them.
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
