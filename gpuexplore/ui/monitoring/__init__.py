"""What Prometheus and its like read at `/metrics`, where a setting allows it."""

from gpuexplore.ui.monitoring.route import METRICS_ROUTE

__all__ = ["METRICS_ROUTE"]
