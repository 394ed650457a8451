// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

interface IERC1271 {
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4);
}

/// Transfers of any token by signature, with the interface and the EIP-712 domain that clients
/// expect of Permit2 at its published address. An owner approves this contract once for a
/// token; what is signed then says who may spend how much of it, and until when.
contract Permit2 {
    // --- what is signed ---

    struct PermitDetails {
        address token;
        uint160 amount;
        uint48 expiration;
        uint48 nonce;
    }

    struct PermitSingle {
        PermitDetails details;
        address spender;
        uint256 sigDeadline;
    }

    struct PermitBatch {
        PermitDetails[] details;
        address spender;
        uint256 sigDeadline;
    }

    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct PermitBatchTransferFrom {
        TokenPermissions[] permitted;
        uint256 nonce;
        uint256 deadline;
    }

    // --- what is asked ---

    struct AllowanceTransferDetails {
        address from;
        address to;
        uint160 amount;
        address token;
    }

    struct TokenSpenderPair {
        address token;
        address spender;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    struct PackedAllowance {
        uint160 amount;
        uint48 expiration;
        uint48 nonce;
    }

    error SignatureExpired(uint256 signatureDeadline);
    error InvalidNonce();
    error InvalidAmount(uint256 maxAmount);
    error LengthMismatch();
    error AllowanceExpired(uint256 deadline);
    error InsufficientAllowance(uint256 amount);
    error ExcessiveInvalidation();
    error InvalidSignatureLength();
    error InvalidSignature();
    error InvalidSigner();
    error InvalidContractSignature();

    event Approval(
        address indexed owner, address indexed token, address indexed spender, uint160 amount, uint48 expiration
    );
    event Permit(
        address indexed owner,
        address indexed token,
        address indexed spender,
        uint160 amount,
        uint48 expiration,
        uint48 nonce
    );
    event Lockdown(address indexed owner, address token, address spender);
    event NonceInvalidation(
        address indexed owner, address indexed token, address indexed spender, uint48 newNonce, uint48 oldNonce
    );
    event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask);

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant DETAILS_TYPEHASH =
        keccak256("PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)");
    bytes32 private constant SINGLE_TYPEHASH = keccak256(
        "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
    );
    bytes32 private constant BATCH_TYPEHASH = keccak256(
        "PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
    );
    bytes32 private constant TOKEN_TYPEHASH = keccak256("TokenPermissions(address token,uint256 amount)");
    bytes32 private constant TRANSFER_TYPEHASH = keccak256(
        "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
    );
    bytes32 private constant BATCH_TRANSFER_TYPEHASH = keccak256(
        "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
    );
    string private constant WITNESS_STUB =
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,";
    string private constant BATCH_WITNESS_STUB =
        "PermitBatchWitnessTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline,";
    /// Half the order of secp256k1: a larger s is the second form of the same signature.
    uint256 private constant S_MAX = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    mapping(address owner => mapping(address token => mapping(address spender => PackedAllowance))) public allowance;
    /// A bit for each number that was used: 256 of them in a word.
    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;

    /// Computed anew each time, so that it holds for the chain that asks.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Permit2"), block.chainid, address(this)));
    }

    // --- allowances ---

    function approve(address token, address spender, uint160 amount, uint48 expiration) external {
        PackedAllowance storage allowed = allowance[msg.sender][token][spender];
        allowed.amount = amount;
        allowed.expiration = _until(expiration);
        emit Approval(msg.sender, token, spender, amount, expiration);
    }

    function permit(address owner, PermitSingle calldata permitSingle, bytes calldata signature) external {
        _requireInTime(permitSingle.sigDeadline);
        bytes32 structHash = keccak256(
            abi.encode(SINGLE_TYPEHASH, _hash(permitSingle.details), permitSingle.spender, permitSingle.sigDeadline)
        );
        _requireSigned(owner, structHash, signature);
        _allow(owner, permitSingle.details, permitSingle.spender);
    }

    function permit(address owner, PermitBatch calldata permitBatch, bytes calldata signature) external {
        _requireInTime(permitBatch.sigDeadline);
        bytes32[] memory hashes = new bytes32[](permitBatch.details.length);
        for (uint256 i = 0; i < hashes.length; i++) {
            hashes[i] = _hash(permitBatch.details[i]);
        }
        bytes32 structHash = keccak256(
            abi.encode(
                BATCH_TYPEHASH, keccak256(abi.encodePacked(hashes)), permitBatch.spender, permitBatch.sigDeadline
            )
        );
        _requireSigned(owner, structHash, signature);
        for (uint256 i = 0; i < hashes.length; i++) {
            _allow(owner, permitBatch.details[i], permitBatch.spender);
        }
    }

    function transferFrom(address from, address to, uint160 amount, address token) external {
        _spend(from, to, amount, token);
    }

    function transferFrom(AllowanceTransferDetails[] calldata transferDetails) external {
        for (uint256 i = 0; i < transferDetails.length; i++) {
            AllowanceTransferDetails calldata one = transferDetails[i];
            _spend(one.from, one.to, one.amount, one.token);
        }
    }

    function lockdown(TokenSpenderPair[] calldata approvals) external {
        for (uint256 i = 0; i < approvals.length; i++) {
            allowance[msg.sender][approvals[i].token][approvals[i].spender].amount = 0;
            emit Lockdown(msg.sender, approvals[i].token, approvals[i].spender);
        }
    }

    function invalidateNonces(address token, address spender, uint48 newNonce) external {
        PackedAllowance storage allowed = allowance[msg.sender][token][spender];
        uint48 oldNonce = allowed.nonce;
        if (newNonce <= oldNonce) revert InvalidNonce();
        if (newNonce - oldNonce > type(uint16).max) revert ExcessiveInvalidation();
        allowed.nonce = newNonce;
        emit NonceInvalidation(msg.sender, token, spender, newNonce, oldNonce);
    }

    // --- single transfers ---

    function permitTransferFrom(
        PermitTransferFrom memory permitted,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes calldata signature
    ) external {
        bytes32 structHash = keccak256(
            abi.encode(
                TRANSFER_TYPEHASH, _hash(permitted.permitted), msg.sender, permitted.nonce, permitted.deadline
            )
        );
        _transferOne(permitted, transferDetails, owner, structHash, signature);
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom memory permitted,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        bytes32 typeHash = keccak256(abi.encodePacked(WITNESS_STUB, witnessTypeString));
        bytes32 structHash = keccak256(
            abi.encode(
                typeHash, _hash(permitted.permitted), msg.sender, permitted.nonce, permitted.deadline, witness
            )
        );
        _transferOne(permitted, transferDetails, owner, structHash, signature);
    }

    function permitTransferFrom(
        PermitBatchTransferFrom memory permitted,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes calldata signature
    ) external {
        bytes32 structHash = keccak256(
            abi.encode(
                BATCH_TRANSFER_TYPEHASH, _hash(permitted.permitted), msg.sender, permitted.nonce, permitted.deadline
            )
        );
        _transferMany(permitted, transferDetails, owner, structHash, signature);
    }

    function permitWitnessTransferFrom(
        PermitBatchTransferFrom memory permitted,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        bytes32 typeHash = keccak256(abi.encodePacked(BATCH_WITNESS_STUB, witnessTypeString));
        bytes32 structHash = keccak256(
            abi.encode(
                typeHash, _hash(permitted.permitted), msg.sender, permitted.nonce, permitted.deadline, witness
            )
        );
        _transferMany(permitted, transferDetails, owner, structHash, signature);
    }

    function invalidateUnorderedNonces(uint256 wordPos, uint256 mask) external {
        nonceBitmap[msg.sender][wordPos] |= mask;
        emit UnorderedNonceInvalidation(msg.sender, wordPos, mask);
    }

    // --- what they share ---

    function _transferOne(
        PermitTransferFrom memory permitted,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 structHash,
        bytes calldata signature
    ) private {
        _requireInTime(permitted.deadline);
        uint256 amount = transferDetails.requestedAmount;
        if (amount > permitted.permitted.amount) revert InvalidAmount(permitted.permitted.amount);
        _useNonce(owner, permitted.nonce);
        _requireSigned(owner, structHash, signature);
        _move(permitted.permitted.token, owner, transferDetails.to, amount);
    }

    function _transferMany(
        PermitBatchTransferFrom memory permitted,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes32 structHash,
        bytes calldata signature
    ) private {
        uint256 count = permitted.permitted.length;
        _requireInTime(permitted.deadline);
        if (count != transferDetails.length) revert LengthMismatch();
        _useNonce(owner, permitted.nonce);
        _requireSigned(owner, structHash, signature);
        for (uint256 i = 0; i < count; i++) {
            TokenPermissions memory most = permitted.permitted[i];
            uint256 amount = transferDetails[i].requestedAmount;
            if (amount > most.amount) revert InvalidAmount(most.amount);
            // What nobody wants is not asked of a token, which may not be one.
            if (amount != 0) _move(most.token, owner, transferDetails[i].to, amount);
        }
    }

    /// A permit that ends at 0 is good for the block in which it is used.
    function _until(uint48 expiration) private view returns (uint48) {
        return expiration == 0 ? uint48(block.timestamp) : expiration;
    }

    function _allow(address owner, PermitDetails calldata details, address spender) private {
        PackedAllowance storage allowed = allowance[owner][details.token][spender];
        if (allowed.nonce != details.nonce) revert InvalidNonce();
        unchecked {
            allowed.nonce = details.nonce + 1;
        }
        allowed.amount = details.amount;
        allowed.expiration = _until(details.expiration);
        emit Permit(owner, details.token, spender, details.amount, details.expiration, details.nonce);
    }

    /// An allowance of the largest number is not used up.
    function _spend(address from, address to, uint160 amount, address token) private {
        PackedAllowance storage allowed = allowance[from][token][msg.sender];
        if (block.timestamp > allowed.expiration) revert AllowanceExpired(allowed.expiration);
        uint160 left = allowed.amount;
        if (left != type(uint160).max) {
            if (amount > left) revert InsufficientAllowance(left);
            unchecked {
                allowed.amount = left - amount;
            }
        }
        _move(token, from, to, amount);
    }

    function _requireInTime(uint256 deadline) private view {
        if (block.timestamp > deadline) revert SignatureExpired(deadline);
    }

    function _useNonce(address owner, uint256 nonce) private {
        uint256 bit = 1 << (nonce & 0xff);
        uint256 used = nonceBitmap[owner][nonce >> 8];
        if (used & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][nonce >> 8] = used | bit;
    }

    function _hash(PermitDetails calldata details) private pure returns (bytes32) {
        return keccak256(abi.encode(DETAILS_TYPEHASH, details));
    }

    function _hash(TokenPermissions memory permitted) private pure returns (bytes32) {
        return keccak256(abi.encode(TOKEN_TYPEHASH, permitted));
    }

    function _hash(TokenPermissions[] memory permitted) private pure returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](permitted.length);
        for (uint256 i = 0; i < hashes.length; i++) {
            hashes[i] = _hash(permitted[i]);
        }
        return keccak256(abi.encodePacked(hashes));
    }

    /// Moves a token, and fails where the token does, or says so, or is none.
    function _move(address token, address from, address to, uint256 amount) private {
        (bool success, bytes memory told) =
            token.call(abi.encodeWithSignature("transferFrom(address,address,uint256)", from, to, amount));
        bool isGood = told.length == 0 ? token.code.length > 0 : told.length >= 32 && abi.decode(told, (uint256)) == 1;
        require(success && isGood, "TRANSFER_FROM_FAILED");
    }

    /// Refuses what the account did not sign over this struct (EIP-712): an account with code
    /// is asked itself (EIP-1271), any other signed it in 65 bytes, or 64 (EIP-2098).
    function _requireSigned(address owner, bytes32 structHash, bytes calldata signature) private view {
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), structHash));
        if (owner.code.length > 0) {
            bytes4 answer = IERC1271(owner).isValidSignature(digest, signature);
            if (answer != IERC1271.isValidSignature.selector) revert InvalidContractSignature();
            return;
        }
        if (signature.length != 65 && signature.length != 64) revert InvalidSignatureLength();
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        uint8 v;
        if (signature.length == 65) {
            v = uint8(signature[64]);
        } else {
            v = uint8(uint256(s) >> 255) + 27;
            s &= bytes32(uint256(type(int256).max));
        }
        if (uint256(s) > S_MAX) revert InvalidSignature();
        address signer = ecrecover(digest, v, r, s);
        if (signer == address(0)) revert InvalidSignature();
        if (signer != owner) revert InvalidSigner();
    }
}
