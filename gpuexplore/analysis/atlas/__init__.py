"""The atlas: what GPUs were measured to do, and which GPU suits a call.

Measurements are what others published and what gpuexplore recorded; where nobody measured a call, it is predicted.
"""

from gpuexplore.analysis.atlas.citations import Citation
from gpuexplore.analysis.atlas.points import Point, PointBound, PointOrigin, citations, points

__all__ = ["Citation", "Point", "PointBound", "PointOrigin", "citations", "points"]
