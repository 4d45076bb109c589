"""Where strangers' code runs: a process that sees the chapter's tree, the fakes and one case at a time, nothing else.

`zygote` has torch loaded and forks; `strong` closes the doors behind a child; `child` is what runs there. On the judge's
side `client` hands out children, and `process` holds one's pipes and the clock. `linux`, `seccomp` and `landlock` are the
kernel's interfaces.
"""
