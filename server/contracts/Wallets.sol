// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @notice A contract wallet for tests: accepts its owner's signatures until it is told to refuse them.
/// @dev The owner is an immutable, so that an account can also delegate to it by EIP-7702.
contract OwnedWallet is IERC1271 {
    address public immutable owner;
    bool public refusing;

    constructor(address owner_) {
        owner = owner_;
    }

    /// @notice Anyone may set it, because the tests act as the owner.
    function setRefusing(bool refusing_) external {
        refusing = refusing_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        (address signer,,) = ECDSA.tryRecover(hash, signature);
        return !refusing && signer == owner ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }
}

/// @notice A wallet that burns all its gas when it is asked to check a signature.
contract BurningWallet is IERC1271 {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        assembly ("memory-safe") {
            invalid()
        }
    }
}
