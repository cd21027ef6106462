// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

/// @notice A proxy in front of the token, like Circle's: it reads two slots and makes one more call, so a transfer costs
/// about as much gas as the real one.
contract TokenProxy {
    bytes32 private constant ADMIN_SLOT = keccak256("org.zeppelinos.proxy.admin");
    bytes32 private constant IMPLEMENTATION_SLOT = keccak256("org.zeppelinos.proxy.implementation");

    fallback() external payable {
        bytes32 adminSlot = ADMIN_SLOT;
        bytes32 implementationSlot = IMPLEMENTATION_SLOT;
        address admin;
        address implementation;
        assembly {
            admin := sload(adminSlot)
        }
        require(msg.sender != admin, "Cannot call fallback function from the proxy admin");
        assembly {
            implementation := sload(implementationSlot)
            calldatacopy(0, 0, calldatasize())
            let success := delegatecall(gas(), implementation, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(success) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}
