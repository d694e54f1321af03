"""What the documentation is made of: its files, their links, headings and code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GENERATED = {"support.md"}
ALL_TEXT = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
PROSE = "\n".join(file.read_text(encoding="utf-8") for file in FILES if file.name not in GENERATED)


def name_of(path):
    return str(path.relative_to(ROOT))


def words_in_code(text):
    """Return what stands between backticks and in fenced blocks, split at spaces and commas."""
    code = [*re.findall(r"`([^`\n]+)`", text), *(block for _, block in fenced(text))]
    return {word for words in code for word in re.split(r"[\s,]+", words)}


def fenced(text):
    """Return (language, code) of every fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def links(text):
    """Return the targets of links and images, in Markdown and in HTML."""
    return [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'(?:src|srcset|href)="([^"\s]+)"', text)]


def anchors(text):
    """Return the anchors GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
