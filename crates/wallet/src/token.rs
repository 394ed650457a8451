//! The dollar token's interface: the parts of EIP-20, EIP-2612 and EIP-3009 that are used.

use alloy_sol_types::sol;

sol! {
    /// A token that is paid with signed authorizations.
    interface Token {
        event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
        event Transfer(address indexed from, address indexed to, uint256 value);
        function transferWithAuthorization(
            address from, address to, uint256 value, uint256 validAfter, uint256 validBefore,
            bytes32 nonce, uint8 v, bytes32 r, bytes32 s
        );
        function authorizationState(address authorizer, bytes32 nonce) returns (bool);
        function balanceOf(address account) returns (uint256);
        function DOMAIN_SEPARATOR() returns (bytes32);
    }
}
