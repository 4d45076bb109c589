def timelines(prepare, forward, process):
    normal = sum(prepare) + sum(forward) + sum(process)
    return normal, normal, sum(prepare[1:]) + sum(process[:-1])
