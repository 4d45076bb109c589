def replay(free, events):
    free = list(free)
    held = {}
    for kind, uid, count in events:
        if kind == "take":
            held.setdefault(uid, free[:count])
            del free[:count]
        else:
            free += held.pop(uid, [])
    return free, [[uid, held[uid]] for uid in sorted(held)]
