def sectors(addresses, access_bytes):
    counts = []
    seen = set()
    for warp in addresses:
        touched = set()
        for address in warp:
            if address is not None:
                touched.add(address // 32)
                touched.add((address + access_bytes - 1) // 32)
        counts.append(len(touched - seen))
        seen |= touched
    return counts
