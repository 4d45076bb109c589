"""The judge: from a problem package and a submission to a verdict. A library; it knows no web framework.

Read it in the order in which a submission travels: `packages` (the problem), `trees` (the chapter's files with the
answer taken out), `sandbox` (where strangers' code runs), `core.frames` (what crosses its border), `checker` (who
holds the answers), `core.compare` and `core.diagnose` (what they mean), `core.verdict` (what is said in the end).
`judge.Judge` drives it; `worker` feeds it from `store`, `practice/judge.py` from a terminal.
"""
