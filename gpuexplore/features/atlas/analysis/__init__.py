"""The atlas: what GPUs were measured to do, and which GPU suits a call.

Measurements are what others published and what gpuexplore recorded; a call without a measurement is predicted.
"""

from gpuexplore.features.atlas.analysis.points import AtlasPoint, Citation, PointBound, PointOrigin, citations, points
from gpuexplore.features.atlas.analysis.which_gpu import (
    ORDERS,
    GpuChoice,
    Order,
    Price,
    price_of,
    prices,
    ranked,
    usual_devices,
    which_gpu,
)

__all__ = [
    "ORDERS",
    "AtlasPoint",
    "Citation",
    "GpuChoice",
    "Order",
    "PointBound",
    "PointOrigin",
    "Price",
    "citations",
    "points",
    "price_of",
    "prices",
    "ranked",
    "usual_devices",
    "which_gpu",
]
