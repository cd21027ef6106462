import type { Hex } from '../hex.ts'
import type { RpcAnswerError } from '../rpc.ts'

/**
 * How nodes refuse a transaction, in the words of geth, reth, erigon, Nethermind, Besu, anvil and EDR. They share no
 * error codes.
 */

/** The node has this transaction or another one at its nonce, or the nonce is used. */
export function isHeld({ message }: RpcAnswerError): boolean {
  return /already (known|imported|exists)|known transaction|alreadyknown|nonce (is )?too low|oldnonce|replace(ment)? .*(underpriced|existing|allowed)|replacementnotallowed/i.test(
    message,
  )
}

/**
 * The words of geth, reth, erigon, Nethermind, Besu, anvil and EDR for code that ran and failed. A node that itself
 * reverted to an older state uses the word as well, so "reverted" alone counts only at the beginning of a message.
 */
const revertWords =
  /(execution|transaction) reverted|VM Exception|^revert(ed)?\b(?! to\b)|out of gas|gas exhausted|invalid opcode|opcode ?not ?found|invalidfeopcode|invalid jump|invalidjump|stack (under|over)flow|stack(under|over)flow|VM execution error|write protection|static ?(call|state)/i

/**
 * Whether the code ran and failed. Then the answer comes from the token or the wallet. Any other error comes from the
 * node and says nothing about the call.
 */
export function isRevert(error: RpcAnswerError): boolean {
  return error.code === 3 || isRevertData(readRevert(error)) || revertWords.test(error.message)
}

/** The data that the failed code returned. EDR puts it into an object, next to its own interpretation. */
export function readRevert({ data }: RpcAnswerError): Hex {
  const returned = data instanceof Object && 'data' in data ? data.data : data
  return typeof returned === 'string' ? (returned as Hex) : '0x'
}

/**
 * A selector and words, as Solidity encodes errors. Some nodes put the hash of a missing block here, which has another
 * length.
 */
function isRevertData(data: Hex): boolean {
  return /^0x[0-9a-f]{8}(?:[0-9a-f]{64})*$/i.test(data)
}

/**
 * Whether the sender can't pay the most that the transaction may cost. The words of a revert don't count, because the
 * contract chooses them.
 */
export function isUnfunded(error: RpcAnswerError): boolean {
  return (
    !isRevert(error) &&
    /insufficient ?funds|insufficient sender balance|doesn't have enough funds|exceeds (account )?balance|overshot/i.test(
      error.message,
    )
  )
}
