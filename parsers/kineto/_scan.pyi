def scan(
    block: bytes, begin: int, end: int, int_keys: bytes
) -> (
    tuple[
        int,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        tuple[bytes, bytes, bytes],
    ]
    | None
): ...
