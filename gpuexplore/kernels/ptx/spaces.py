"""Where memories lie among generic addresses: device memory high up, the others in windows of their own."""

DEVICE_BASE = 0x7F00_0000_0000
SHARED_WINDOW = 0x1000_0000_0000
LOCAL_WINDOW = 0x2000_0000_0000
WINDOW_BYTES = 2**32
WINDOWS = {"global": 0, "const": 0, "param": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def space_of(address: int) -> str:
    """Return the memory that a generic address lies in."""
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
        return "shared"
    return "local" if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES else "global"
