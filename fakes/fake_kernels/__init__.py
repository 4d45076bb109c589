"""What the fake flashinfer and the fake sgl_kernel share.

Both packages only translate their own arguments; everything that decides a number or a refusal lives
here once: `reference` (attention on paged KV), `variants` (what is done to scores on the way), `paged`
(how a kernel walks the page lists), `checks_*` (what can be wrong), `mistakes_*` (what each mistake means
and what the real kernel does with it), `mode` (strict or faithful), `errors`.
"""
