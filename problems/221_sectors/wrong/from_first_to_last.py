def sectors(addresses, access_bytes):
    counts = []
    for warp in addresses:
        active = [address for address in warp if address is not None]
        last = (max(active, default=-1) + access_bytes - 1) // 32
        counts.append(last - min(active, default=0) // 32 + 1 if active else 0)
    return counts
