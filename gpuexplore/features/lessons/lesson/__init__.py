"""Lessons as text: their format, the arithmetic of their checks, and what becomes of a guess.

A lesson is a file that an instructor writes without Python: `*.md` in this folder, and an instructor's own in
`$GPUEXPLORE_HOME/lessons/`. `catalog` finds them, `format` reads them, `work` says what a step measures, `quantities`
names what was measured, `expression` computes with it, `outcome` judges a guess by it.
"""
