def replay(free, events):
    free = list(free)
    held, over = {}, set()
    for kind, uid, count in events:
        if kind == "take":
            if uid in over:
                over.discard(uid)
                held[uid] = []
            held.setdefault(uid, []).extend(free[:count])
            del free[:count]
        else:
            free += held.get(uid, [])
            over.add(uid)
    return free, [[uid, held[uid]] for uid in sorted(held) if uid not in over]
