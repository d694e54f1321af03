"""Cluster: measuring on the nodes of a Dask cluster, and lending a machine to one."""

from gpuexplore.registry import Feature

FEATURE = Feature(
    "cluster",
    commands={"worker": "lend this machine's devices to a Dask cluster"},
    cluster_engine="gpuexplore.features.cluster.dask",
)
