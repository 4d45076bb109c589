def timelines(prepare, forward, process):
    normal = sum(prepare) + sum(forward) + sum(process)
    cpu, gpu, idle = 0, 0, 0
    ends = []
    for i in range(len(forward)):
        cpu += prepare[i]
        start = cpu
        if i > 0:
            idle += max(0, start - gpu)
        gpu = start + forward[i]
        ends.append(gpu)
        if i > 0:
            cpu = max(cpu, ends[i - 1]) + process[i - 1]
    if ends:
        cpu = max(cpu, ends[-1]) + process[-1]
    return normal, cpu, idle
