def sectors(addresses, access_bytes):
    counts = []
    for warp in addresses:
        touched = set()
        for address in warp:
            if address is not None:
                touched.add(address // 32)
        counts.append(len(touched))
    return counts
