"""Administration: copies of the database, old runs erased, the log of who did what, and metrics for monitors."""

from gpuexplore.registry import Feature

FEATURE = Feature(
    "admin",
    commands={
        "backup": "copy what cannot be made again to a file, while the server runs",
        "restore": "check such a copy, or put it back",
        "prune": "erase old runs for good, and give the space back",
        "upgrade": "bring the database to the schema of this version, or say what that takes",
        "audit": "who ran, cancelled and deleted what, and when",
    },
    after="record",
    routes="gpuexplore.features.admin.routes",
)
