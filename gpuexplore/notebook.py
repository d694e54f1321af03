"""Functions for the cells of a notebook, where notebooks import them from."""

from gpuexplore.features.notebook.functions import App, Files, hand_over, new_folder, show_app

__all__ = ["App", "Files", "hand_over", "new_folder", "show_app"]
