"""When the owners were last seen: a run that waits for somebody who has gone gives its place to others."""

from gpuexplore.store.database import Database, epoch_s, upsert
from gpuexplore.store.tables import OWNERS


def see(database: Database, owner: str) -> None:
    """Note that `owner` is here now."""
    with database.writing() as connection:
        upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
