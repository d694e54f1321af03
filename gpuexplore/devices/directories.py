"""Where gpuexplore keeps what outlives a process: one directory for data, one for what can be made again."""

import os
from pathlib import Path

HOME_VARIABLE = "GPUEXPLORE_HOME"


def data_directory() -> Path:
    """Return the directory for results that must not be lost; it is created when it is missing."""
    return _created(_home() or _user_directory("user_data_dir", "XDG_DATA_HOME", ".local/share"))


def cache_directory() -> Path:
    """Return the directory for what can be measured again; it is created when it is missing."""
    home = _home()
    return _created(home / "cache" if home else _user_directory("user_cache_dir", "XDG_CACHE_HOME", ".cache"))


def _home() -> Path | None:
    value = os.environ.get(HOME_VARIABLE)
    return Path(value).expanduser() if value else None


def _user_directory(function: str, variable: str, below_home: str) -> Path:
    """Return platformdirs' answer, or on a bare machine the one of the XDG specification."""
    try:
        import platformdirs
    except ImportError:
        return Path(os.environ.get(variable) or Path.home() / below_home) / "gpuexplore"
    return Path(getattr(platformdirs, function)("gpuexplore", appauthor=False))


def _created(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
