; A contract that makes others by CREATE2, at the address where every chain has it. It is
; called with 32 bytes of salt and the creation code, and returns the 20 bytes of the address.
;
; It is written in opcodes, since tools compare the hash of its code before they use it. Each
; line is an opcode, for PUSH with its bytes; `name:` is a JUMPDEST, and `@name` its place.

; The length of the creation code: all that came but the salt.
PUSH32 ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0
CALLDATASIZE
ADD
PUSH1 00
DUP2
PUSH1 20
DUP3
CALLDATACOPY
; CREATE2 with the salt, the code and the ether that came.
DUP1
CALLDATALOAD
DUP3
DUP3
CALLVALUE
CREATE2
; Without an address there is a revert.
DUP1
ISZERO
ISZERO
PUSH1 @made
JUMPI
DUP2
DUP3
REVERT
made:
DUP1
DUP3
MSTORE
POP
POP
POP
PUSH1 14
PUSH1 0c
RETURN
