"""Notebook: the magic `%gpuexplore`, the app below a cell, and files for readers, in Jupyter, Colab and Kaggle."""

from gpuexplore.registry import Feature

FEATURE = Feature("notebook", modules={"gpuexplore.notebook": "gpuexplore.features.notebook.functions"})
