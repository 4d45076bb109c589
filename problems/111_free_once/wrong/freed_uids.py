def replay(free, events):
    free = list(free)
    held, freed = {}, set()
    for kind, uid, count in events:
        if kind == "take":
            held.setdefault(uid, []).extend(free[:count])
            del free[:count]
        elif uid not in freed:
            free += held.pop(uid, [])
            freed.add(uid)
    return free, [[uid, held[uid]] for uid in sorted(held)]
