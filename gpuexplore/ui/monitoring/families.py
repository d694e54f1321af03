"""Which metrics there are, and what they say."""

import gpuexplore
from gpuexplore.model import RunState
from gpuexplore.store.figures import Figures
from gpuexplore.ui.monitoring.openmetrics import Family
from gpuexplore.ui.monitoring.process import errors
from gpuexplore.ui.undocumented import connected_sessions


def families(found: Figures | None) -> list[Family]:
    """Return every metric; those of the database where it can be used."""
    up = Family(
        "gpuexplore_database_up", "gauge", "Whether the database can be used.", (({}, float(found is not None)),)
    )
    return [*_of_process(), up, *(_of_database(found) if found else ())]


def _of_process() -> list[Family]:
    build = Family("gpuexplore_build", "info", "What serves.", (({"version": gpuexplore.__version__}, 1.0),))
    failed = Family(
        "gpuexplore_page_errors",
        "counter",
        "Errors of pages that nobody expected, since this server started.",
        (({}, float(errors())),),
    )
    connected = connected_sessions()
    if connected is None:
        return [build, failed]
    pages = Family(
        "gpuexplore_sessions", "gauge", "Pages that are connected to this server.", (({}, float(connected)),)
    )
    return [build, failed, pages]


def _of_database(found: Figures) -> list[Family]:
    queues = [({"devices": queue.devices}, queue) for queue in found.queues]
    hosts = [({"host": each.host, "supervisor": each.name}, each.age_s) for each in found.supervisors]
    made = [
        Family(
            "gpuexplore_queue_runs",
            "gauge",
            "Runs that wait, by the devices they ask for.",
            tuple((labels, float(queue.runs)) for labels, queue in queues),
        ),
        Family(
            "gpuexplore_queue_oldest_wait_seconds",
            "gauge",
            "How long the run that came first has waited.",
            tuple((labels, queue.oldest_s) for labels, queue in queues),
            "seconds",
        ),
        Family(
            "gpuexplore_runs",
            "gauge",
            "Runs in the database, by state.",
            tuple(({"state": state.value}, float(found.runs.get(state.value, 0))) for state in RunState),
        ),
        Family(
            "gpuexplore_device_use_seconds",
            "counter",
            "How long devices worked for runs, by the devices these asked for.",
            tuple(({"devices": devices}, used_s) for devices, used_s in sorted(found.used_s.items())),
            "seconds",
        ),
        Family(
            "gpuexplore_supervisor_age_seconds",
            "gauge",
            "How long ago a supervisor reported itself.",
            tuple(hosts),
            "seconds",
        ),
        Family(
            "gpuexplore_database_size_bytes",
            "gauge",
            "What the database takes of its disk.",
            (({}, float(found.database_bytes)),),
            "bytes",
        ),
    ]
    if found.free_bytes is not None:
        free = float(found.free_bytes)
        made.append(Family("gpuexplore_disk_free_bytes", "gauge", "What is free of that disk.", (({}, free),), "bytes"))
    return made
