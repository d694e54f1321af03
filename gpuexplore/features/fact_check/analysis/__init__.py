"""Claims as notebooks said and printed them, and what follows from that by rules: no verdict is written down anywhere.

`claims.toml` has only what stands in a notebook, `claim.py` reads it, `quantities.py` computes what a figure should
have been, and `judge.py` draws the verdict.
"""
