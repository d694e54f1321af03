"""What a run of the marker `ptx` prints at its end: kernels, launches and faults by operation, mutations by kind."""

from collections import Counter, defaultdict

HEAD = f"{'operation':<16}{'kernels':>9}{'launches':>10}{'warp instructions':>20}{'faults':>8}{'CPU s':>8}"


def summary(reports):
    """Yield the lines of both tables, from what tests have recorded as properties; none where none has."""
    recorded = defaultdict(list)
    for report in reports:
        if report.when == "call":
            for name, values in report.user_properties:
                recorded[name].append(values)
    if recorded["launch"]:
        yield from _launches(recorded["launch"], recorded["cpu_s"])
    if recorded["mutation"]:
        yield from _mutations(recorded["mutation"])


def _launches(launches, seconds):
    yield HEAD
    rows = defaultdict(Counter)
    kernels = defaultdict(set)
    for key, _, instructions, faults in launches:
        for name in (key.split("/", maxsplit=1)[0], "all"):
            kernels[name].add(key)
            rows[name].update(launches=1, instructions=instructions, faults=faults)
    for key, spent_s in seconds:
        for name in (key.split("/", maxsplit=1)[0], "all"):
            rows[name]["cpu_s"] += spent_s
    for name in (*(name for name in rows if name != "all"), "all"):
        row = rows[name]
        yield (
            f"{name:<16}{len(kernels[name]):>9}{row['launches']:>10}{row['instructions']:>20,}{row['faults']:>8}"
            f"{row['cpu_s']:>8.0f}"
        )


def _mutations(mutations):
    tried, noticed = Counter(), Counter()
    for _, name, was_noticed in mutations:
        for row in (name, "all"):
            tried[row] += 1
            noticed[row] += was_noticed
    yield f"{'mutation':<26}{'tried':>7}{'noticed':>9}"
    yield from (f"{name:<26}{tried[name]:>7}{noticed[name]:>9}" for name in (*(n for n in tried if n != "all"), "all"))
