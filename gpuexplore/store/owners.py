"""When the owners were last seen: a run that waits for somebody who has gone gives its place to others."""

from gpuexplore.store.database import SOON_S, Database, epoch_s, upsert
from gpuexplore.store.tables import OWNERS


def see(database: Database, owner: str) -> None:
    """Note that `owner` is here now.

    Raises:
        StoreUnavailable: the database cannot be written to now, or not soon.
    """
    with database.writing(patience_s=SOON_S) as connection:
        upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
