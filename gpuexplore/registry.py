"""The registry: every page of the app, and the features that add pages, commands and activities to the core.

A feature is a folder of `gpuexplore/features`. Its `__init__` declares `FEATURE`, and its name in `FEATURES` switches
it on; nothing else in the core names it. What it needs is loaded when its page, command or activity is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from gpuexplore.core import PAGES, once

# pages of one place are tabs in this order
FEATURES: tuple[str, ...] = (
    "explore",
    "machine_code",
    "trace",
    "transfer",
    "training",
    "model",
    "lessons",
    "mistakes",
    "fact_check",
    "tensors",
    "errors",
    "selftest",
    "workshop",
    "atlas",
    "which_gpu",
    "own_functions",
    "notebook",
    "cluster",
    "admin",
)
PLACES: Mapping[str, str] = {  # of the navigation, in order, each with an icon of Material Symbols
    "Explore": "explore",
    "Benchmark": "timer",
    "Runs": "history",
    "Predict": "query_stats",
    "Model": "stacked_bar_chart",
    "Roofline": "roofing",
    "Kernels": "stairs",
    "Traces": "flowsheet",
    "Learn": "school",
    "Rooms": "groups",
}
SERVER = "Server"  # the place of pages that the header leads to


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the app.

    Attributes:
        name: in addresses.
        place: one of PLACES, or SERVER: pages of one place are tabs of each other.
        about: one sentence for its tooltip.
        reads: the parameters of its address, separated by blanks.
        terms: of the glossary that its title explains.
        also: name of a page that is a view of this one now, whose links lead there; empty for none.
        script: file that draws it; None for one of the core, which lies in `pages/`.
    """

    name: str
    title: str
    place: str
    about: str
    reads: str = ""
    terms: tuple[str, ...] = ()
    also: str = ""
    script: Path | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters of its address."""
        return tuple(self.reads.split())

    @property
    def file(self) -> Path:
        """Script that draws the page."""
        return self.script or PAGES / f"{self.name.replace('-', '_')}.py"


@dataclass(frozen=True, slots=True)
class ActivityKind:
    """One kind of activity.

    Attributes:
        module: exports `perform(arguments, device, *, clock, isolation, progress)`; loaded in a worker only.
        title: for the queue.
        page: name of the page that shows it.
    """

    module: str
    title: str
    page: str


@dataclass(frozen=True, slots=True)
class Feature:
    """Declaration of one feature.

    Attributes:
        name: of its folder.
        needs: features that it imports.
        page: drawn by a script of its folder, and tested by `test_page.py` of its tests; None where it has none.
        commands: each with a line of help, executed by `<name>_command.py` of its folder.
        after: command of the core that these follow in the list of all; empty for its end.
        activities: by the name under which the database keeps them.
        functions: of the package, as `gx.memory_of`, with the module that defines each.
        modules: of the package, as `gpuexplore.notebook`, with the one that defines what each has.
        implementations: module that adds implementations and operations, with what `gpuexplore.operations.additions`
            says; empty for none.
        preload: module that the web server loads before the first visit; empty for none.
        cluster_engine: module whose `open_engine(scheduler, on_change)` measures on other machines; empty for none.
        offer: module whose `offer()` Explore and Benchmark call before something is measured, and whose `entries()` the
            search of the header lists; empty for none.
        lesson_blocks: kinds of blocks of a lesson whose quantities `lesson_block.py` of its folder gives, and which its
            `ui` shows.
        routes: module whose `ROUTES` the web server answers in addition to its pages; empty for none.
    """

    name: str
    needs: tuple[str, ...] = ()
    page: Page | None = None
    commands: Mapping[str, str] = field(default_factory=dict)
    after: str = ""
    activities: Mapping[str, ActivityKind] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    implementations: str = ""
    preload: str = ""
    cluster_engine: str = ""
    offer: str = ""
    lesson_blocks: tuple[str, ...] = ()
    routes: str = ""


@once
def features() -> tuple[Feature, ...]:
    """Return the features that are switched on, in order."""
    return tuple(import_module(f"gpuexplore.features.{name}").FEATURE for name in FEATURES)
