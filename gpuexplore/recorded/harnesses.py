"""Files of other harnesses: those of pyperf, pytest-benchmark and nvbench as results, all others by their kind.

A benchmark that gpuexplore exported is the case it was. What any other computes is not in its file, so that it is one
of the operation BENCHMARK, called by its own name: times and their ratios are all that is known of it. None of these
harnesses checks that the result is right, so accuracy is unknown.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from gpuexplore.core import (
    LONGEST_TEXT,
    Accuracy,
    Case,
    Contrast,
    Device,
    Environment,
    Experiment,
    InvalidInput,
    Measurement,
    Options,
    Result,
    Shape,
    Status,
    check_characters,
    decode_strictly,
    require,
)
from gpuexplore.core.dtypes import UNKNOWN_DTYPE
from gpuexplore.operations.families import BENCHMARK
from gpuexplore.recorded.validation import check_device, check_names, check_result, named

Object = Mapping[str, Any]
UNKNOWN = "unknown"
CASE = "gpuexplore_case"  # of our exports: the case, how right it was, and which process took which samples
READ = "pyperf, pytest-benchmark, nvbench and gpuexplore's own JSON are read"
_OURS = re.compile(r"(\w+)\[([\w=,]+)-(\w+)-(.+)-([\w:]+)\]")  # operation, shape, dtype, implementation, device


def results_of(name: str, data: Object) -> tuple[str, Sequence[Result]] | None:
    """Return the results in a file of another harness, and its name; None where it is of none of HARNESSES.

    Args:
        name: of the file.
        data: its content.

    Raises:
        InvalidInput: what is wrong in it, and where.
    """
    harness = next((known for known, (keys, _) in HARNESSES.items() if keys <= _keys(data)), None)
    if harness is None:
        return None
    _, read = HARNESSES[harness]
    with named(name):
        found = list(read(data))
        if not found:
            raise InvalidInput("benchmarks: the file has none")
        twice = [case for case, count in Counter(result.case for result in found).items() if count > 1]
        if twice:
            raise InvalidInput(f"benchmark {twice[0].implementation!r} appears twice")
    return harness, found


def kind_of(content: Any) -> str | None:
    """Return what a file is, and why no run is made of it: of JSON its value, else its first line; None: unknown."""
    if isinstance(content, str):
        return next((said for said, heading in KINDS_OF_TEXT.items() if heading.search(content)), None)
    first = content[0] if isinstance(content, list) and content else content
    keys = _keys(first)
    return next((said for said, wanted in KINDS_OF_JSON.items() if wanted <= keys), None)


def _keys(data: Any, depth: int = 2) -> frozenset[str]:
    """Return the keys of an object, and behind a dot those of what lies in it or first in its lists."""
    if not isinstance(data, Mapping):
        return frozenset()
    inner = {key: value[0] if isinstance(value, list) and value else value for key, value in data.items()}
    deeper = {f"{key}.{name}" for key, value in inner.items() if depth > 1 for name in _keys(value, depth - 1)}
    return frozenset(data) | deeper


def _pyperf(data: Object) -> Iterator[Result]:
    require(str(data["version"]) == "1.0", "version of pyperf's format", data["version"], ["1.0"])
    shared = _object("metadata", data.get("metadata") or {})
    for number, each in enumerate(_objects("benchmarks", data["benchmarks"]), start=1):
        about = {**shared, **_object("metadata", each.get("metadata") or {})}
        title = _name(about.get("name"), number)
        with named(title):
            if (unit := about.get("unit", "second")) != "second":
                raise InvalidInput.of("unit", unit, "second")
            runs = [run for run in _objects("runs", each["runs"]) if run.get("values")]  # others calibrate
            about = {**about, **_object("metadata", (runs[0].get("metadata") if runs else None) or {})}
            samples = [_samples("values", run["values"]) for run in runs]
            flat = tuple(sample_s for values in samples for sample_s in values)
            loops = _count("loops", about.get("loops", 1)) * _count("inner_loops", about.get("inner_loops", 1))
            measurement = Measurement(flat, None, loops, processes=tuple(map(len, samples)))
            yield _result(title, measurement, about, about.get(CASE))


def _pytest_benchmark(data: Object) -> Iterator[Result]:
    machine = _object("machine_info", data.get("machine_info") or {})
    processor = _object("cpu", machine.get("cpu") or {})
    about = {
        "cpu_model_name": processor.get("brand_raw") or processor.get("brand"),
        "platform": " ".join(str(machine[key]) for key in ("system", "release", "machine") if machine.get(key)),
        "date": data.get("datetime"),
        "pytest_benchmark_version": data.get("version"),
        **machine,
    }
    benchmarks = _objects("benchmarks", data["benchmarks"])
    repeated = {title for title, count in Counter(str(each.get("name")) for each in benchmarks).items() if count > 1}
    for number, each in enumerate(benchmarks, start=1):
        title = _name(each.get("fullname" if str(each.get("name")) in repeated else "name"), number)
        with named(title):
            stats = _object("stats", each["stats"])
            whole = _samples("data", stats["data"]) if stats.get("data") is not None else (_seconds(stats, "median"),)
            batch = _count("iterations", stats.get("iterations", 1))
            extra = _object("extra_info", each.get("extra_info") or {})
            yield _result(title, Measurement(whole, None, batch), about, extra.get(CASE))


def _nvbench(data: Object) -> Iterator[Result]:
    devices = {each["id"]: _gpu(each) for each in _objects("devices", data.get("devices") or [])}
    version = _object("version", _object("meta", data.get("meta") or {}).get("version") or {})
    library = _object("nvbench", version.get("nvbench") or {}).get("string")
    for number, each in enumerate(_objects("benchmarks", data["benchmarks"]), start=1):
        benchmark = _name(each.get("name"), number)
        for state in _objects("states", each["states"]):
            axes = [(axis["name"], axis["value"]) for axis in _objects("axes", state.get("axis_values") or [])]
            label = ", ".join(f"{name}={value}" for name, value in axes)
            title = _name(f"{benchmark}[{label}]" if label else benchmark, number)
            with named(title):
                yield _of_state(title, state, devices, str(library or UNKNOWN))


def _of_state(title: str, state: Object, devices: Mapping[Any, Device], version: str) -> Result:
    number = state.get("device")
    if number is not None and number not in [*devices]:
        raise InvalidInput.of("device", number, devices or "none: the file describes none")
    device = devices.get(number)
    values = {
        summary["tag"]: entry.get("value")
        for summary in _objects("summaries", state.get("summaries") or [])
        for entry in _objects("data", summary.get("data") or [])
        if entry.get("name") == "value"
    }
    of_gpu = {mode: f"nv/{mode}/time/gpu/mean" for mode in ("cold", "batch") if f"nv/{mode}/time/gpu/mean" in values}
    tags = list(of_gpu.values()) or [tag for tag in values if re.fullmatch(r"nv/\w+/time/cpu/mean", tag)]
    environment = None
    if device is not None:
        environment = Environment(device, "", UNKNOWN, None, UNKNOWN, UNKNOWN, {"nvbench": version})
    options = Options(cache="cold" if "cold" in of_gpu else "warm" if "batch" in of_gpu else None)
    case = Case(BENCHMARK.name, Shape(()), UNKNOWN_DTYPE.name, title, device.id if device else "cpu", options)
    if state.get("is_skipped"):
        reason = str(state.get("skip_reason") or "skipped by nvbench")
        return Result(case, Status.SKIPPED, reason, environment=environment)
    if not tags:
        raise InvalidInput.of("times", ", ".join(values) or "none", "nv/cold/time/gpu/mean or nv/batch/time/gpu/mean")
    samples = _count("sample_size", float(values.get(f"{tags[0].split('/time')[0]}/sample_size") or 1))
    warm = [Contrast("warm", (_seconds(values, of_gpu["batch"]),))] if len(of_gpu) > 1 else []
    measurement = Measurement((_seconds(values, tags[0]),), None, samples, tuple(warm))  # a mean is one sample of many
    return Result(case, Status.OK, measurement=measurement, environment=environment)


def _gpu(about: Object) -> Device:
    """Return a GPU as nvbench describes it."""
    capability = about.get("sm_version")
    return _device(
        f"cuda:{about['id']}",
        str(about.get("name") or UNKNOWN),
        cores=about.get("number_of_sms"),
        memory_bytes=about.get("global_memory_size"),
        compute_capability=f"{capability // 100}.{capability // 10 % 10}" if isinstance(capability, int) else None,
    )


def _result(title: str, measurement: Measurement, about: Object, ours: Any) -> Result:
    """Return a result of a CPU's process, or of the case that gpuexplore exported under this title."""
    exported = _object(CASE, json.loads(ours) if isinstance(ours, str) else ours or {})
    case = decode_strictly(Case, exported["case"]) if exported else _titled(title)
    accuracy = decode_strictly(Accuracy, exported["accuracy"]) if exported.get("accuracy") is not None else None
    if processes := exported.get("processes"):
        measurement = replace(measurement, processes=tuple(_count("processes", count) for count in processes))
    if per_round := exported.get("per_round"):
        measurement = replace(measurement, per_round=_count("per_round", per_round))
    if case is None or not _is_known(case):
        case = Case(BENCHMARK.name, Shape(()), UNKNOWN_DTYPE.name, title, "cpu")
        accuracy = None
    environment = _environment(about, case.device)
    result = Result(case, Status.OK, measurement=measurement, accuracy=accuracy, environment=environment)
    if accuracy is not None:
        check_result(result)
    return result


def _titled(title: str) -> Case | None:
    """Return the case that a benchmark is called after, as exports before 0.2 call it; None where it is none."""
    found = _OURS.fullmatch(title)
    if found is None:
        return None
    operation, shape, dtype, implementation, device = found.groups()
    pairs = [pair.partition("=") for pair in shape.split(",")]
    if not all(length.isdecimal() and int(length) for _, _, length in pairs):
        return None
    lengths = tuple((axis, int(length)) for axis, _, length in pairs)
    return Case(operation, Shape(lengths), dtype, implementation, device)


def _is_known(case: Case) -> bool:
    """Return whether this version knows what a case computes, or that this is unknown."""
    if case.operation == BENCHMARK.name:
        return True
    try:
        check_names(Experiment(case.operation, (case.shape,), (case.dtype,), (case.implementation,)))
    except InvalidInput:
        return False
    return True


def _environment(about: Object, device_id: str) -> Environment | None:
    """Return what a harness says of the machine; None where it does not say which processor it has."""
    processor = about.get("cpu_model_name")
    if not processor:
        return None
    libraries = {
        {"perf": "pyperf"}.get(library, library): str(value)
        for key, value in about.items()
        if (library := key.removesuffix("_version")) != key and not library.startswith(("python", "gpuexplore"))
    }
    ours = "gpuexplore_version" in about
    date = str(about.get("date") or "")
    return Environment(
        _device(device_id, processor),
        started_utc=f"{date[:19].replace(' ', 'T')}+00:00" if date and (ours or date.endswith("+00:00")) else "",
        app_version=str(about.get("gpuexplore_version") or UNKNOWN),
        commit=None,
        python=str(about.get("python_version") or UNKNOWN).split(" ")[0],
        platform=str(about.get("platform") or UNKNOWN),
        libraries=libraries,
    )


def _device(device_id: str, name: str, **facts: Any) -> Device:
    device = decode_strictly(Device, {"id": device_id, "kind": device_id.partition(":")[0], "name": name, **facts})
    check_device(device)
    return device


def _object(what: str, data: Any) -> Object:
    require(isinstance(data, Mapping), what, data, "objects")
    return data


def _objects(what: str, data: Any) -> Sequence[Object]:
    require(isinstance(data, list), what, data, "lists")
    return [_object(what, each) for each in data]


def _name(name: Any, number: int) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput.of(f"name of benchmark {number}", name, "texts")
    check_characters("name", name)
    return name if len(name) <= LONGEST_TEXT else f"{name[: LONGEST_TEXT - 2]} …"


def _samples(what: str, values: Any) -> tuple[float, ...]:
    if not isinstance(values, list) or not values:
        raise InvalidInput.of(what, values, "lists of at least one positive number of seconds")
    return tuple(_seconds({what: value}, what) for value in values)


def _seconds(values: Object, what: str) -> float:
    """Return a time of a file; nvbench writes numbers as text."""
    value = values.get(what)
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except (OverflowError, ValueError):
        seconds = 0.0
    if not isfinite(seconds) or seconds <= 0:
        raise InvalidInput.of(what, value, "positive numbers of seconds")
    return seconds


def _count(what: str, value: Any) -> int:
    most = 2**53  # a count that JSON holds exactly
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= most or value % 1:
        raise InvalidInput.of(what, value, f"whole numbers from 1 to {most}")
    return int(value)


# Harnesses whose files are read: by name, what the files have, as `_keys` finds it, and what reads the results.
HARNESSES: Mapping[str, tuple[frozenset[str], Callable[[Object], Iterator[Result]]]] = {
    "nvbench": (frozenset({"benchmarks.states"}), _nvbench),
    "pytest-benchmark": (frozenset({"machine_info", "benchmarks"}), _pytest_benchmark),
    "pyperf": (frozenset({"version", "benchmarks"}), _pyperf),
}
KINDS_OF_JSON: Mapping[str, frozenset[str]] = {
    "a Chrome trace, as torch.profiler writes it: `gpuexplore trace FILE` reads it": frozenset({"traceEvents"}),
    "a Chrome trace of events alone: `gpuexplore trace FILE` reads those of torch.profiler": frozenset({"ph", "ts"}),
    f"JSON of Google Benchmark; {READ}": frozenset({"context", "benchmarks.real_time"}),
    f"JSON of hyperfine, whose times are of commands and not of calls; {READ}": frozenset({"results.command"}),
    f"JSON of JMH; {READ}": frozenset({"primaryMetric"}),
    f"JSON of asv (airspeed velocity); {READ}": frozenset({"results", "commit_hash"}),
    f"JSON of asv (airspeed velocity), which lists benchmarks; {READ}": frozenset({"version", "machine"}),
    f"JSON of BenchmarkDotNet; {READ}": frozenset({"HostEnvironmentInfo"}),
    f"JSON of Criterion, estimates without samples; {READ}": frozenset({"mean.confidence_interval"}),
    f"JSON of vLLM's serving benchmark, rates of requests; {READ}": frozenset({"request_throughput"}),
}
KINDS_OF_TEXT: Mapping[str, re.Pattern[str]] = {
    "CSV exported by gpuexplore; import its JSON, which has the samples": re.compile("operation,.*median_s"),
    f"CSV of nvbench; its --json is read ({READ})": re.compile("Benchmark,Device.*GPU Time|GPU Time \\(sec\\)"),
    "CSV of pytest-benchmark; its --benchmark-json is read": re.compile("^name,.*min,max,mean"),
    f"CSV of hyperfine; {READ}": re.compile("^command,mean,stddev"),
    f"CSV of Google Benchmark; {READ}": re.compile("^name,iterations,real_time"),
    f"CSV of JMH; {READ}": re.compile('^"?Benchmark"?,"?Mode"?,"?Threads'),
    f"CSV of Nsight Compute, counters of kernels; {READ}": re.compile('"ID","Process ID"'),
    f"CSV of nsys stats; {READ}": re.compile("Time \\(%\\),"),
    f"a Triton perf_report CSV; it has one rate per size, without samples; {READ}": re.compile(
        r"^[^,()]+(,[^,()]+ \([^,()]+\))+\s*$|^[^,]+,(.*,)?triton\b", re.IGNORECASE
    ),
    f"the output of `go test -bench`; {READ}": re.compile("^goos: "),
}
