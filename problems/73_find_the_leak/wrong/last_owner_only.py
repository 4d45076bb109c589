def audit(log):
    owners, finished = {}, set()
    taken_twice, not_owned = set(), set()
    for what, uid, *rest in log:
        if what == "finish":
            finished.add(uid)
            continue
        for page in rest[0]:
            mine = owners.setdefault(page, set())
            if what == "take":
                if mine:
                    taken_twice.add(page)
                mine.clear()
                mine.add(uid)
            elif uid in mine:
                mine.remove(uid)
            else:
                not_owned.add(page)
    leaked = [page for page, mine in owners.items() if mine & finished]
    return sorted(leaked), sorted(taken_twice), sorted(not_owned)
