import type { Hex } from '../hex.ts'
import type { RpcAnswerError } from '../rpc.ts'

/**
 * How nodes refuse a transaction, in the words of geth, reth, erigon, Nethermind, Besu, anvil and EDR. They share no
 * error codes.
 */

/** The node has this transaction, or another one in its place, or the nonce is used. */
export function isHeld({ message }: RpcAnswerError): boolean {
  return /already (known|imported|exists)|known transaction|alreadyknown|nonce (is )?too low|oldnonce|replace(ment)? .*(underpriced|existing|allowed)|replacementnotallowed/i.test(
    message,
  )
}

/**
 * How geth, reth, erigon, Nethermind, Besu, anvil and EDR say that the code that ran has failed. A node that itself
 * reverted to something says so, too: the bare word counts only where a message begins with it.
 */
const revertWords =
  /(execution|transaction) reverted|VM Exception|^revert(ed)?\b(?! to\b)|out of gas|gas exhausted|invalid opcode|opcode ?not ?found|invalidfeopcode|invalid jump|invalidjump|stack (under|over)flow|stack(under|over)flow|VM execution error|write protection|static ?(call|state)/i

/**
 * Whether the code ran and failed: then the token or a wallet has answered. Any other error is the node's own, and says
 * nothing about the call.
 */
export function isRevert(error: RpcAnswerError): boolean {
  return error.code === 3 || isRevertData(readRevert(error)) || revertWords.test(error.message)
}

/** What the code that failed has returned. EDR puts it into an object, next to what it makes of it. */
export function readRevert({ data }: RpcAnswerError): Hex {
  const returned = data instanceof Object && 'data' in data ? data.data : data
  return typeof returned === 'string' ? (returned as Hex) : '0x'
}

/** A selector and words, as Solidity encodes errors. The hash of a block that is missing has another length. */
function isRevertData(data: Hex): boolean {
  return /^0x[0-9a-f]{8}(?:[0-9a-f]{64})*$/i.test(data)
}

/** The sender cannot pay the most that the transaction may cost. The words of a revert are the contract's. */
export function isUnfunded(error: RpcAnswerError): boolean {
  return (
    !isRevert(error) &&
    /insufficient ?funds|insufficient sender balance|doesn't have enough funds|exceeds (account )?balance|overshot/i.test(
      error.message,
    )
  )
}
