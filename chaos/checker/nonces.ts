import type { History, Violation } from './history.ts'

/** I6. A nonce carries one call. If it is signed again, it carries the same call, or no call, which frees the nonce. */
export function checkNonces({ books, chain, sightings }: History): Violation[] {
  const wrong: string[] = []
  const broadcasts = new Map(books.broadcasts.map((broadcast) => [broadcast.hash, broadcast]))
  for (const { address, nextNonce } of books.settlers) {
    const mined = chain.mined.filter(({ from }) => from === address)
    for (const [i, { hash, nonce }] of mined.entries()) {
      if (nonce !== i) wrong.push(`${hash} of ${address} has nonce ${nonce} instead of ${i}`)
      const broadcast = broadcasts.get(hash)
      if (broadcast?.settler !== address || broadcast.nonce !== nonce)
        wrong.push(`${hash} of ${address} was mined but is not in broadcasts`)
    }
    if (mined.length > nextNonce)
      wrong.push(`${address} has ${mined.length} mined transactions, but its next nonce is ${nextNonce}`)
  }
  for (const { hash, isCommitted } of sightings)
    if (isCommitted === false) wrong.push(`${hash} was sent before it was committed`)
  const calls = new Map<string, string>()
  for (const { hash, settler, nonce, call, isNoOp } of books.broadcasts) {
    const other = calls.get(`${settler} ${nonce}`)
    if (isNoOp) continue
    if (other !== undefined && other !== call) wrong.push(`${hash} makes a second call at nonce ${nonce}`)
    calls.set(`${settler} ${nonce}`, call)
  }
  return wrong.map((what) => ({ invariant: 'I6', what }))
}
