"""Administration: backups of the database, pruning of old runs, the audit log, and metrics for monitors."""

from gpuexplore.registry import Feature

FEATURE = Feature(
    "admin",
    commands={
        "backup": "back up the database and your own lessons to a file, while the server runs",
        "restore": "verify a backup, or restore it",
        "prune": "permanently erase old runs, and free their disk space",
        "upgrade": "upgrade the database to the schema of this version, or print what that needs",
        "audit": "audit log: runs started, cancelled and deleted, by user and time",
    },
    after="record",
    routes="gpuexplore.features.admin.routes",
)
