def sectors(addresses, access_bytes):
    counts = []
    for warp in addresses:
        active = {address for address in warp if address is not None}
        counts.append(-(-len(active) * access_bytes // 32))
    return counts
