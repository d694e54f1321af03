"""A strict reader of OpenMetrics 1.0: what it does not know is an error."""

import math
import re

LABELS = r'\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"(?:,(?!\})|(?=\})))*\}'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:]*)({LABELS})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"')
SUFFIXES = {"gauge": ("",), "counter": ("_total",), "info": ("_info",)}


def parsed(text):
    """Return values by name and labels, and the kinds by family."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], "ends in # EOF and one line end"
    values, kinds, family = {}, {}, None
    for line in lines[:-2]:
        assert line == line.strip() != ""
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in kinds, f"{family} is told twice"
            kinds[family] = kind
            seen = {"TYPE"}
        elif line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert name == family
            assert word in {"UNIT", "HELP"} - seen
            assert word == "HELP" or family.endswith(f"_{rest}")
            assert re.fullmatch(r'(?:[^\\]|\\[\\n"])*', rest)
            seen.add(word)
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            name, labels, value = found.groups()
            assert name in [family + suffix for suffix in SUFFIXES[kinds[family]]]
            pairs = LABEL.findall(labels or "")
            assert len({key for key, _ in pairs}) == len(pairs)
            key = (name, tuple(pairs))
            assert key not in values, f"{key} is told twice"
            values[key] = float(value)
            assert math.isfinite(values[key])
            assert kinds[family] != "counter" or values[key] >= 0
            assert kinds[family] != "info" or values[key] == 1
    return values, kinds
