"""minisgl: an LLM inference engine small enough to read in an evening and real enough to serve.

The package is imported by its parts (`from minisgl.core import Req`, `from minisgl.engine import Engine`);
this file stays empty of imports, so that each chapter's tree can be imported with only the files it has.
"""
