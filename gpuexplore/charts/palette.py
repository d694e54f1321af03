"""Colours: of an implementation where implementations are compared, of a dtype where dtypes are.

Each implementation has one colour on every chart and page, in light and in dark.

Families share their hues: numba-cpu is orange and brown, numba-cuda violet and red, torch green. The colours of an
operation differ by a distance in CIELAB that tests check, and each has a contrast of 3 with the page.
"""

from collections.abc import Mapping, Sequence
from zlib import crc32

import altair as alt

from gpuexplore.core.dtypes import FORMATS

COLORS: Mapping[str, tuple[str, str]] = {
    "numpy": ("#0d36a7", "#66bffd"),
    "numba-cpu-naive": ("#5a4300", "#988710"),
    "numba-cpu-reordered": ("#891d0d", "#fea126"),
    "numba-cpu-blocked": ("#ea5b12", "#fce02e"),
    "numba-cpu-vector": ("#9c8e80", "#b4612e"),
    "numba-cpu": ("#c6871c", "#fdc68b"),
    "numba-cuda-naive": ("#a185bf", "#ae606e"),
    "numba-cuda-coalesced": ("#dc6e84", "#e9dbec"),
    "numba-cuda-shared": ("#850b67", "#f74238"),
    "numba-cuda-register": ("#fe2998", "#fd4dc9"),
    "numba-cuda-vector": ("#ef0e4f", "#e5166f"),
    "numba-cuda-warptile": ("#410b1b", "#ff05f2"),
    "numba-cuda-tensorcore": ("#e554da", "#f9a2e3"),
    "numba-cuda-wgmma": ("#2f1be0", "#ae02fd"),
    "numba-cuda-online": ("#b8123c", "#ff6a80"),
    "numba-cuda": ("#9040c0", "#a567da"),
    "torch": ("#00816e", "#4fa98a"),
    "torch-compile": ("#095300", "#258912"),
    "torch-autotune": ("#2ba714", "#2ffe9f"),
    "torch-autocast": ("#00719f", "#ccfa1b"),
    "torch-checkpoint": ("#87994d", "#3bea4a"),
    "torch-accumulate": ("#04a663", "#d7fd9e"),
    "triton": ("#179dbe", "#08eefa"),
    "cupy": ("#30495f", "#6b7987"),
}


SCALE_OF_DTYPES = alt.Scale(domain=list(FORMATS))  # in the colours of the theme


def color_of(implementation: str, shade: int = 0) -> alt.ExprRef:
    """Return the colour of an implementation, whatever the theme of the page.

    Args:
        implementation: its name.
        shade: 0 for its first device, one more for each further one.
    """
    colors = (("#c2185b", "#ff80ab"), ("#8a6d00", "#e0c34d"), ("#6d4c41", "#d7a98c"))
    of_user = colors[crc32(implementation.encode()) % len(colors)]  # by the name: unknown before it is measured
    light, dark = ([int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in COLORS.get(implementation) or of_user)
    red, green, blue = dark
    pale = 0.3 * red + 0.6 * green + 0.1 * blue > 160  # as bright as an eye sees it; it has no range towards white
    shaded = (_shade(light, 0, shade), _shade(dark, 0 if pale else 255, shade))
    return alt.ExprRef("luminance(background) > 0.5 ? '{}' : '{}'".format(*shaded))


def scale_of(implementations: Sequence[str]) -> alt.Scale:
    """Return the scale from the names of implementations to their colours."""
    return alt.Scale(domain=list(implementations), range=[color_of(name) for name in implementations])


def _shade(channels: Sequence[int], end: int, shade: int) -> str:
    shaded = 0.4  # of the way to black or white, for each further device of an implementation
    kept = (1 - shaded) ** shade
    return "#" + "".join(f"{round(end + kept * (channel - end)):02x}" for channel in channels)
