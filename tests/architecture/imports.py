"""What a script imports, and what comes along when a fresh interpreter does the same."""

import ast
import subprocess
import sys

from tests.waiting import DEADLINE_S

_TELL = 'import sys; print(*sorted({name.partition(".")[0] for name in sys.modules}))'


def import_nodes(path):
    """Return the import statements anywhere in a script, functions included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def libraries_named_in(path):
    """Return the top-level names of what a script imports."""
    names = (
        [name.name for name in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for node in import_nodes(path)
    )
    return {name.partition(".")[0] for listed in names for name in listed}


def statements_of(*paths):
    """Return the import statements of scripts as text, once each."""
    return sorted({ast.unparse(node) for path in paths for node in import_nodes(path)})


def libraries_loaded_by(*statements):
    """Return the top-level names in sys.modules after a new process ran these import statements."""
    command = [sys.executable, "-c", "\n".join([*statements, _TELL])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())
