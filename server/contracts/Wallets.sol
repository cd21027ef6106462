// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {WebAuthn} from "@openzeppelin/contracts/utils/cryptography/WebAuthn.sol";

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

/// @notice A contract wallet for tests that accepts the signatures of Coinbase's smart wallet: its owners are addresses
/// and passkeys, and sign a hash that is bound to the wallet and the chain.
contract PasskeyWallet is IERC1271, EIP712 {
    struct Signature {
        uint256 ownerIndex;
        bytes data;
    }

    /// @dev How the wallet's clients encode what a passkey signs. OpenZeppelin's type has another order.
    struct Assertion {
        bytes authenticatorData;
        string clientDataJSON;
        uint256 challengeIndex;
        uint256 typeIndex;
        bytes32 r;
        bytes32 s;
    }

    bytes32 private constant MESSAGE = keccak256("CoinbaseSmartWalletMessage(bytes32 hash)");

    /// @notice An address as a word, or the two coordinates of a passkey's public key.
    bytes[] public owners;

    constructor(bytes[] memory owners_) EIP712("Coinbase Smart Wallet", "1") {
        owners = owners_;
    }

    function isValidSignature(bytes32 hash, bytes calldata encoded) external view returns (bytes4) {
        Signature memory signature = abi.decode(encoded, (Signature));
        bytes memory owner = owners[signature.ownerIndex];
        bytes32 digest = _hashTypedDataV4(keccak256(abi.encode(MESSAGE, hash)));
        bool isGood = owner.length == 32
            ? isSigned(digest, signature.data, abi.decode(owner, (address)))
            : isAsserted(digest, abi.decode(signature.data, (Assertion)), owner);
        return isGood ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function isSigned(bytes32 digest, bytes memory signature, address owner) private pure returns (bool) {
        (address signer,,) = ECDSA.tryRecover(digest, signature);
        return signer == owner;
    }

    function isAsserted(bytes32 digest, Assertion memory given, bytes memory key) private view returns (bool) {
        (bytes32 x, bytes32 y) = abi.decode(key, (bytes32, bytes32));
        WebAuthn.WebAuthnAuth memory assertion = WebAuthn.WebAuthnAuth({
            r: given.r,
            s: given.s,
            challengeIndex: given.challengeIndex,
            typeIndex: given.typeIndex,
            authenticatorData: given.authenticatorData,
            clientDataJSON: given.clientDataJSON
        });
        return WebAuthn.verify(abi.encode(digest), assertion, x, y);
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
