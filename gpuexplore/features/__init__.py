"""Features: subjects that the rest can do without, a folder each, switched on by a line of `gpuexplore.registry`.

In the folder of a feature lie, as far as it has them: its declaration (`__init__`), its page (`page.py` and `ui/`),
its commands (`<name>_command.py`), its functions of the package (`functions.py`), its charts (`chart.py`), what follows
from numbers (`analysis/`), its blocks of lessons (`lesson_block.py`), what the web server answers beside pages
(`routes.py`), the implementations that it adds (`sources.py`), and what runs in a worker (`measure/`), which neither
Streamlit nor SQLAlchemy reaches. Its tests lie in `tests/features/<name>/`, with the fixtures of pages, commands and
charts that they import.

A feature imports the core, and other features only where its declaration names them as `needs`. The core imports no
feature: it reads the declarations, and loads a page, command, activity or function when it is asked for.

To add one, follow the recipe "Add a page" of CONTRIBUTING.md. To take one out, delete both folders and the line; `make
features` does so for each, and checks what is left.
"""
