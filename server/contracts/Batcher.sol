// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice Settles many EIP-3009 payments in one transaction, each on its own. It calls `transferWithAuthorization` and
/// nothing else. It has no owner, storage, funds or events: the signed authorizations decide what moves, and anyone may
/// send them.
///
/// Calldata has no selector. Numbers are big-endian, and nothing is padded:
///
///   batch    gas limit of each call (4), then groups
///   group    token (20), recipient (20), number of payments (2), then the payments
///   payment  payer (20), value (12), validAfter (5), validBefore (5), marker (16), nonce (32), r (32), s (32)
///
/// The highest bit of s is the signature's parity (EIP-2098). The marker is for those who read the chain.
///
/// A call that reverts or uses up its gas costs at most the limit, and the next one follows. The batch reverts as a whole
/// before a call would get less than the limit, so whoever sends it cannot make a payment fail by sending too little gas.
contract Batcher {
    /// @dev For the CALL itself (2,600 if the token was not touched before) and the few steps around it.
    uint256 private constant RESERVE = 3_000;

    fallback() external {
        assembly {
            let limit := shr(224, calldataload(0))
            // A call can be given 63/64 of what is left. That must cover the limit and the reserve.
            let least := add(div(mul(add(limit, RESERVE), 64), 63), 1)
            // transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32), at 28.
            mstore(0, 0xe3ee160e)
            for { let at := 4 } lt(at, calldatasize()) {} {
                let token := shr(96, calldataload(at))
                mstore(0x40, shr(96, calldataload(add(at, 20))))
                let end := add(at, mul(shr(240, calldataload(add(at, 40))), 154))
                at := add(at, 42)
                end := add(end, 42)
                if gt(end, calldatasize()) { revert(0, 0) }
                for {} lt(at, end) { at := add(at, 154) } {
                    let word := calldataload(at)
                    mstore(0x20, shr(96, word))
                    mstore(0x60, and(word, 0xffffffffffffffffffffffff))
                    word := calldataload(add(at, 32))
                    mstore(0x80, shr(216, word))
                    mstore(0xa0, and(shr(176, word), 0xffffffffff))
                    mstore(0xc0, calldataload(add(at, 58)))
                    mstore(0x100, calldataload(add(at, 90)))
                    word := calldataload(add(at, 122))
                    mstore(0xe0, add(27, shr(255, word)))
                    mstore(0x120, shr(1, shl(1, word)))
                    if lt(gas(), least) { revert(0, 0) }
                    pop(call(limit, token, 0, 28, 292, 0, 0))
                }
            }
        }
    }
}
