"""What happens around the pages: who may reach them and as whom, the supervisor beside them, the last resort."""

from starlette.middleware import Middleware

from gpuexplore.ui.identity import OWNER_COOKIE
from gpuexplore.ui.monitoring import METRICS_ROUTE
from gpuexplore.ui.server import api, sending
from gpuexplore.ui.server.bounds.connections import BoundedAnswers
from gpuexplore.ui.server.bounds.uploads import BoundedUploads
from gpuexplore.ui.server.cookie import OwnerCookie
from gpuexplore.ui.server.frames import FrameCheck
from gpuexplore.ui.server.headers import SafeHeaders
from gpuexplore.ui.server.hosts import AllowedHosts
from gpuexplore.ui.server.last_resort import show_reference
from gpuexplore.ui.server.lifespan import lifespan
from gpuexplore.ui.server.origins import OwnOrigins
from gpuexplore.ui.server.proxies import TrustedProxies

__all__ = ["MIDDLEWARE", "OWNER_COOKIE", "ROUTES", "lifespan", "show_reference"]

ROUTES = (*api.ROUTES, *sending.ROUTES, METRICS_ROUTE)
MIDDLEWARE = tuple(  # the first one sees a request first
    Middleware(layer)
    for layer in (
        BoundedAnswers,
        TrustedProxies,
        SafeHeaders,
        AllowedHosts,
        OwnOrigins,
        BoundedUploads,
        FrameCheck,
        OwnerCookie,
    )
)
