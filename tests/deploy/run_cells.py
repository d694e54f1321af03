"""Runs the code cells of a notebook in IPython, one after the other, and prints what they gave as JSON.

    python run_cells.py NOTEBOOK.ipynb [NAME=VALUE ...] [--only ID]

NAME=VALUE is what a reader types into a form: the first line `NAME = ...` of a cell is written anew. It stands alone:
the environment whose Python runs it has no checkout.
"""

import json
import re
import sys
import urllib.request
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell


def main(notebook, *words):
    only = words[words.index("--only") + 1] if "--only" in words else None
    typed = dict(word.split("=", 1) for word in words if "=" in word)
    cells = [cell for cell in json.loads(Path(notebook).read_text())["cells"] if cell["cell_type"] == "code"]
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    found = {}
    for cell in cells:
        if only in (None, cell["id"]):
            done = shell.run_cell(filled(cell, typed))
            done.raise_error()
            found[cell["id"]] = told(done.result)
    sys.stdout.write(json.dumps(found) + "\n")


def filled(cell, typed):
    source = "".join(cell["source"])
    for name, value in typed.items():
        source = re.sub(rf"^{name} = .*$", lambda _, line=f"{name} = {value!r}": line, source, flags=re.M)
    return source


def told(result):
    """Return what there is to know of what a cell gave: text, HTML, files, and whether the app answers."""
    port = getattr(result, "port", None)
    return {
        "text": repr(result),
        "html": getattr(result, "_repr_html_", lambda: None)(),
        "files": [str(path) for path in getattr(result, "paths", ())],
        "port": port,
        "health": urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health").read().decode() if port else None,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
