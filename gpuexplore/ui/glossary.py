"""Terms with their meaning from the glossary, as tooltips: one for each page, and one for any text that uses them."""

import re
from collections.abc import Mapping

from gpuexplore.core.once import once
from gpuexplore.core.served import GLOSSARY
from gpuexplore.ui.navigation import pages

ENTRY = re.compile(r"^- \*\*([^*\n]+)\*\*(?: \([^()\n]*\))?: (.+?)(?=^- \*\*|^#|^GB is|\Z)", re.MULTILINE | re.DOTALL)


@once
def _terms() -> Mapping[str, str]:
    """Return the meaning of each term, by the name the glossary has for it; nothing where it did not come along."""
    if not GLOSSARY.is_file():
        return {}
    found = ENTRY.findall(GLOSSARY.read_text(encoding="utf-8"))
    link = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")
    return {name: link.sub(r"\1", " ".join(meaning.split())) for name, meaning in found}


def page_help(page: str) -> str | None:
    """Return the tooltip of a page: its terms with their meanings; None where the glossary did not come along."""
    return _listed([name for name in pages()[page].terms if name in _terms()])


def help_on(text: str) -> str | None:
    """Return the tooltip of a text: the terms it uses with their meanings; None where it uses none."""
    return _listed([name for name in _terms() if _pattern(name).search(text)][:5])


def _listed(names: list[str]) -> str | None:
    return "\n\n".join(f"**{name}**: {_terms()[name]}" for name in names) or None


@once
def _pattern(name: str) -> re.Pattern[str]:
    words = "|".join(re.escape(word.strip()) for word in name.split("/"))
    return re.compile(rf"\b(?:{words})s?\b", 0 if name.isupper() else re.IGNORECASE)
