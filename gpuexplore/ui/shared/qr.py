"""QR codes of addresses, for a screen that a class looks at."""

import segno


def qr_code(address: str) -> str:
    """Return a QR code as an SVG, black on white in every theme: that is what cameras read best."""
    return str(segno.make(address, error="m").svg_inline(scale=8, border=2, dark="#0f151d", light="#ffffff"))
