// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @notice A contract wallet for tests: valid is what its owner's key signed, until it is told to refuse.
/// @dev The owner is an immutable, so that an account can also delegate to it by EIP-7702.
contract OwnedWallet is IERC1271 {
    address public immutable owner;
    bool public refusing;

    constructor(address owner_) {
        owner = owner_;
    }

    /// @notice Anybody may flip it: it is the tests that play the owner.
    function setRefusing(bool refusing_) external {
        refusing = refusing_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        (address signer,,) = ECDSA.tryRecover(hash, signature);
        return !refusing && signer == owner ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }
}

/// @notice A wallet that burns all the gas it is given when it is asked about a signature.
contract BurningWallet is IERC1271 {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        assembly ("memory-safe") {
            invalid()
        }
    }
}
