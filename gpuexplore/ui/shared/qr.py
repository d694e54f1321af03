"""QR codes of addresses, for a screen that a class looks at."""

import segno


def qr_code(address: str, *, scale: float = 8) -> str:
    """Return a QR code as an SVG, black on white in every theme: that is what cameras read best.

    Args:
        address: what it leads to.
        scale: pixels of a module.
    """
    return str(segno.make(address, error="m").svg_inline(scale=scale, border=2, dark="#0f151d", light="#ffffff"))
