"""The atlas: what GPUs were measured to do, and which GPU suits a call.

Measurements are what others published and what gpuexplore recorded; where nobody measured a call, it is predicted.
"""

from gpuexplore.analysis.atlas.citations import Citation
from gpuexplore.analysis.atlas.points import Point, PointBound, PointOrigin, citations, points
from gpuexplore.analysis.atlas.prices import Price, price_of, prices
from gpuexplore.analysis.atlas.which_gpu import ORDERS, Choice, Order, ranked, usual_devices, which_gpu

__all__ = [
    "ORDERS",
    "Choice",
    "Citation",
    "Order",
    "Point",
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
