def sectors(addresses, access_bytes):
    counts = []
    for warp in addresses:
        touched = []
        for address in warp:
            if address is not None:
                touched += {address // 32, (address + access_bytes - 1) // 32}
        counts.append(len(touched))
    return counts
