"""What a cell of a notebook calls: the app below it, and files for whoever reads it.

IPython is never imported: values draw themselves, by `_repr_html_` and `__repr__`, as its display asks them to.
"""

from gpuexplore.notebook.app import App, show_app
from gpuexplore.notebook.files import Files, hand_over, new_folder

__all__ = ["App", "Files", "hand_over", "new_folder", "show_app"]
