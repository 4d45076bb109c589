"""sgl_kernel on the CPU: the part of sglang-kernel 0.4.6 that the course calls, computed by `fake_kernels`.

What is modelled and what isn't: `fakes/README.md`. Nothing here comes from the library.
"""
