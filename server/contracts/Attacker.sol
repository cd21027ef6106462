// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

/// @notice Runs any calls in one transaction, all or none: to front-run from inside a contract, or put decoys around a payment.
contract Attacker {
    struct Call {
        address target;
        bytes data;
    }

    function run(Call[] calldata calls) external payable {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory reason) = calls[i].target.call(calls[i].data);
            if (success) continue;
            assembly ("memory-safe") {
                revert(add(reason, 0x20), mload(reason))
            }
        }
    }
}
