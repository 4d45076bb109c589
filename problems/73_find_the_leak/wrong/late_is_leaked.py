def audit(log):
    owners, finished = {}, set()
    taken_twice, not_owned, lost = set(), set(), set()
    for what, uid, *rest in log:
        if what == "finish":
            finished.add(uid)
            lost.update(page for page, mine in owners.items() if uid in mine)
            continue
        for page in rest[0]:
            mine = owners.setdefault(page, set())
            if what == "take":
                if mine:
                    taken_twice.add(page)
                mine.add(uid)
            elif uid in mine:
                mine.remove(uid)
            else:
                not_owned.add(page)
    leaked = lost
    return sorted(leaked), sorted(taken_twice), sorted(not_owned)
