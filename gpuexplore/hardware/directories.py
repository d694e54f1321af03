"""Persistent directories: one for data, one for caches that can be recreated."""

import os
from pathlib import Path

from gpuexplore.core.errors import InvalidInput

HOME_VARIABLE = "GPUEXPLORE_HOME"


def data_directory() -> Path:
    """Return the directory for results that must not be lost; it is created when it is missing.

    Raises:
        InvalidInput: it cannot be made or written; names it and the variable that sets another.
    """
    return _created(os.environ.get(HOME_VARIABLE) or _user_directory("user_data_dir", "XDG_DATA_HOME", ".local/share"))


def cache_directory() -> Path:
    """Return the directory for what can be measured again; it is created when it is missing.

    Raises:
        InvalidInput: as of `data_directory`.
    """
    home = os.environ.get(HOME_VARIABLE)
    return _created(home, "cache") if home else _created(_user_directory("user_cache_dir", "XDG_CACHE_HOME", ".cache"))


def _user_directory(function: str, variable: str, below_home: str) -> str:
    """Return platformdirs' answer, or on a bare machine the one of the XDG specification."""
    try:
        import platformdirs
    except ImportError:
        return str(Path(os.environ.get(variable) or f"~/{below_home}") / "gpuexplore")
    return str(getattr(platformdirs, function)("gpuexplore", appauthor=False))


def lessons_directory() -> Path:
    """Return where an instructor's own lessons lie, which a backup keeps."""
    return data_directory() / "lessons"


def _created(text: str, *below: str) -> Path:
    try:
        path = Path(text).expanduser().joinpath(*below)
        path.mkdir(0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError, ValueError) as error:  # no such user's home, a NUL
        raise _unusable(text, getattr(error, "strerror", None) or str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable(text, "no permission to write")
    return path


def _unusable(text: str, reason: str) -> InvalidInput:
    accepted = f"directories that can be made and written ({reason})"
    if os.environ.get(HOME_VARIABLE):
        return InvalidInput.of(HOME_VARIABLE, text, accepted)
    return InvalidInput.of("directory", text, f"{accepted}; set {HOME_VARIABLE} to use another")
