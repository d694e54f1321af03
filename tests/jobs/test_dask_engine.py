"""The engine `dask` on a real scheduler and real nodes, one of them at an address nobody can reach."""

from contextlib import contextmanager

import pytest

from tests.jobs.conftest import DEVICE
from tests.jobs.dask_cluster import Cluster
from tests.jobs.engine_outcomes import *  # noqa: F403 - pytest finds them here

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.start_hidden_node("hidden")
    cluster.start_node("near")
    yield cluster
    cluster.close()


@pytest.fixture
def engine_with(cluster):
    """Return how to open an engine whose nodes run `fake_runner`."""

    @contextmanager
    def opened(device=DEVICE, **limits):
        with cluster.engine(f"hidden/{device.id}", **limits) as engine:
            yield engine

    return opened


@pytest.fixture
def cases_of(cases_of):
    def named(*implementations, device="fake", **others):
        return cases_of(*implementations, device=f"hidden/{device}", **others)

    return named
