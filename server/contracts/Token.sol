// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// @notice A dollar for local chains that behaves like Circle's FiatTokenV2_2: the same EIP-3009 functions, checks in the
/// same order, the same revert strings, the same logs, and nearly the same gas. A test token: anyone may mint, pause and
/// blacklist.
/// @dev It runs behind a proxy at the real token's address, so it has no constructor: server/src/dev/placement.ts writes
/// the first four slots, and must change with them. Like the real token, it hashes its domain anew in every call and
/// asks a separate contract about signatures, because both cost gas.
contract Token {
    string public name;
    string public symbol;
    uint8 public decimals;
    bool public paused;
    /// @dev One character, in the slot of `paused`: in the real token it is a constant and costs no reading.
    bytes1 private _version;
    /// @dev The balance, with the blacklist flag in the highest bit: one slot for both, as in the real token. The token's
    /// own address is on the blacklist from the start, so that nobody can send it money by mistake.
    mapping(address account => uint256) private _states;
    uint256 public totalSupply;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    /// @notice True once the nonce was used or cancelled. A nonce is any 32 bytes, unique per authorizer.
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;

    uint256 private constant BLACKLISTED = 1 << 255;
    uint256 private constant BALANCE = BLACKLISTED - 1;
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant TRANSFER_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 private constant RECEIVE_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 private constant CANCEL_TYPEHASH = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    modifier whenNotPaused() {
        require(!paused, "Pausable: paused");
        _;
    }

    modifier notBlacklisted(address account) {
        require(!isBlacklisted(account), "Blacklistable: account is blacklisted");
        _;
    }

    function version() public view returns (string memory) {
        return string(abi.encodePacked(_version));
    }

    // solhint-disable-next-line func-name-mixedcase
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                DOMAIN_TYPEHASH, keccak256(bytes(name)), keccak256(bytes(version())), block.chainid, address(this)
            )
        );
    }

    function mint(address to, uint256 value) external whenNotPaused notBlacklisted(to) returns (bool) {
        require(to != address(0), "FiatToken: mint to the zero address");
        totalSupply += value;
        // The sum of all balances, and so each of them, stays below the blacklist's bit.
        require(totalSupply <= BALANCE, "FiatToken: too much was minted");
        _states[to] += value;
        emit Transfer(address(0), to, value);
        return true;
    }

    function pause() external {
        paused = true;
    }

    function unpause() external {
        paused = false;
    }

    function blacklist(address account) external {
        _states[account] |= BLACKLISTED;
    }

    function unBlacklist(address account) external {
        _states[account] &= BALANCE;
    }

    function isBlacklisted(address account) public view returns (bool) {
        return _states[account] & BLACKLISTED != 0;
    }

    function balanceOf(address account) public view returns (uint256) {
        return _states[account] & BALANCE;
    }

    function transfer(address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        _move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(from)
        notBlacklisted(to)
        returns (bool)
    {
        uint256 allowed = allowance[from][msg.sender];
        require(value <= allowed, "ERC20: transfer amount exceeds allowance");
        _move(from, to, value);
        allowance[from][msg.sender] = allowed - value;
        return true;
    }

    function approve(address spender, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(spender)
        returns (bool)
    {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        _transferAuthorized(
            TRANSFER_TYPEHASH, from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v)
        );
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external {
        _transferAuthorized(TRANSFER_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        _transferAuthorized(
            RECEIVE_TYPEHASH, from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v)
        );
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external {
        _transferAuthorized(RECEIVE_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        _cancel(authorizer, nonce, abi.encodePacked(r, s, v));
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) external {
        _cancel(authorizer, nonce, signature);
    }

    function _transferAuthorized(
        bytes32 typehash,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        if (typehash == RECEIVE_TYPEHASH) require(to == msg.sender, "FiatTokenV2: caller must be the payee");
        require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
        _requireUnused(from, nonce);
        _requireSigned(
            from, keccak256(abi.encode(typehash, from, to, value, validAfter, validBefore, nonce)), signature
        );
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        _move(from, to, value);
    }

    function _cancel(address authorizer, bytes32 nonce, bytes memory signature) private whenNotPaused {
        _requireUnused(authorizer, nonce);
        _requireSigned(authorizer, keccak256(abi.encode(CANCEL_TYPEHASH, authorizer, nonce)), signature);
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function _requireUnused(address authorizer, bytes32 nonce) private view {
        require(!authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled");
    }

    function _requireSigned(address signer, bytes32 structHash, bytes memory signature) private view {
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
        require(TokenSignatures.isValid(signer, digest, signature), "FiatTokenV2: invalid signature");
    }

    function _move(address from, address to, uint256 value) private {
        require(from != address(0), "ERC20: transfer from the zero address");
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= balanceOf(from), "ERC20: transfer amount exceeds balance");
        _setBalance(from, balanceOf(from) - value);
        _setBalance(to, balanceOf(to) + value);
        emit Transfer(from, to, value);
    }

    /// @dev Writes the whole slot, so the account must not be on the blacklist.
    function _setBalance(address account, uint256 balance) private {
        require(balance <= BALANCE, "FiatTokenV2_2: Balance exceeds (2^255 - 1)");
        require(!isBlacklisted(account), "FiatTokenV2_2: Account is blacklisted");
        _states[account] = balance;
    }
}

/// @notice What the token calls to check a signature. A library with an external function is a contract of its own, as it
/// is for the real token.
library TokenSignatures {
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    /// @dev An address with code is checked only by ERC-1271, even if it also has a key (EIP-7702).
    function isValid(address signer, bytes32 digest, bytes memory signature) external view returns (bool) {
        if (signer.code.length == 0) return _recover(digest, signature) == signer;
        (bool success, bytes memory answer) =
            signer.staticcall(abi.encodeCall(IERC1271.isValidSignature, (digest, signature)));
        return success && answer.length >= 32
            && abi.decode(answer, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
    }

    /// @dev Written here because OpenZeppelin's version reverts with errors that the real token does not have.
    function _recover(bytes32 digest, bytes memory signature) private pure returns (address signer) {
        require(signature.length == 65, "ECRecover: invalid signature length");
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        require(uint256(s) <= HALF_ORDER, "ECRecover: invalid signature 's' value");
        require(v == 27 || v == 28, "ECRecover: invalid signature 'v' value");
        signer = ecrecover(digest, v, r, s);
        require(signer != address(0), "ECRecover: invalid signature");
    }
}
