"""Where a notebook runs: what its browser can reach and how files leave it differ."""

import os
from typing import Literal

Platform = Literal["colab", "kaggle", "jupyter"]

KAGGLE = "KAGGLE_KERNEL_RUN_TYPE"  # Kaggle's image is built from Colab's, so it is asked for first
COLAB = "COLAB_RELEASE_TAG"


def platform() -> Platform:
    """Return where this process runs, as the services tell it in its environment; else Jupyter."""
    if os.environ.get(KAGGLE):
        return "kaggle"
    return "colab" if os.environ.get(COLAB) else "jupyter"
