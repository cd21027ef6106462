import type { RpcAnswerError } from '../rpc.ts'

/**
 * How nodes refuse a transaction, in the words of geth, reth, erigon, Nethermind, Besu and anvil. They share no error
 * codes.
 */

/** The node has this transaction, or another one in its place, or the nonce is used. */
export function isHeld({ message }: RpcAnswerError): boolean {
  return /already (known|imported|exists)|known transaction|alreadyknown|nonce (is )?too low|oldnonce|replace(ment)? .*(underpriced|existing|allowed)|replacementnotallowed/i.test(
    message,
  )
}

/** The sender cannot pay the most that the transaction may cost. */
export function isUnfunded({ code, message }: RpcAnswerError): boolean {
  // 3 is a revert, whose words are the contract's.
  return code !== 3 && /insufficient ?funds|exceeds (account )?balance|overshot/i.test(message)
}
