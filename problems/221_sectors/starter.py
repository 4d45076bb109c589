def sectors(addresses, access_bytes):
    """Sectors of 32 bytes moved for each warp, list of int.

    addresses: a list of int or None for each warp.
    access_bytes: int, 1 to 16.
    """
    raise NotImplementedError
