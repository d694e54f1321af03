"""The code of a room: six letters that nobody misreads from the back row, and that spell no word."""

import secrets

from gpuexplore.errors import InvalidInput

# No vowels, so no words; of letters that look alike in a projector's type (B and 8, G and C, I and L, O and Q, S and 5,
# U and V, Z and 2) at most one, and no digits.
LETTERS = "CDFHJKMNPRTWXY"
CODE_LENGTH = 6


def new_code() -> str:
    """Return the code of a new room: one of 7.5 million, drawn so that it cannot be foreseen."""
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))


def read_code(text: str) -> str:
    """Return the code that somebody typed or followed a link with: spaces, hyphens and small letters are fine.

    Raises:
        InvalidInput: it cannot be one.
    """
    code = "".join(text.split()).replace("-", "").upper()
    if len(code) != CODE_LENGTH or not set(code) <= set(LETTERS):
        raise InvalidInput.of("room", text, f"codes of {CODE_LENGTH} letters out of {LETTERS}")
    return code


def spoken(code: str) -> str:
    """Return a code in two groups, as one reads it aloud: `KTR MWX`."""
    half = CODE_LENGTH // 2
    return f"{code[:half]} {code[half:]}"
