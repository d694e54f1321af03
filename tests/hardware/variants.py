"""Every name of the table as drivers and people write it, and the variants sold under almost the same name."""

from gpuexplore.hardware import ACCELERATORS

NEVER_HELD = (
    *(" Laptop GPU", " with Max-Q Design", " Max-Q", " Mobile", " MIG 1g.5gb", " MIG 3g.40gb", " MIG 7g.80gb"),
    *(" (engineering sample)", " ES", " QS", "-8C", "-40Q", " D v2", " Rev. 2"),
)
SOMETIMES_HELD = (" D", "D", " Ti", " SUPER", " Ti SUPER", " Ada", " NVL", " PCIe", "0", "X", "s")


def typed_names(row):
    """Return each driver name of `row`, with and without its maker where that is how drivers differ."""
    bare = [name.removeprefix("NVIDIA ") for name in row.driver_names]
    return tuple(
        dict.fromkeys([*row.driver_names, *bare, *(f"NVIDIA {name}" for name in bare if row.vendor == "NVIDIA")])
    )


NAMED = [(name, row.key) for row in ACCELERATORS for name in typed_names(row)]
HELD = {(name.casefold(), row.key) for row in ACCELERATORS for name in (*typed_names(row), row.key, row.name)}
