"""The content of an export: results with what follows from them, and the run they are of."""

from dataclasses import dataclass

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.core import Environment, Experiment, Run, array_conditions, default_title


@dataclass(frozen=True, slots=True)
class Exported:
    """Results and the run they are of; None where they are of none that was kept."""

    experiment: Experiment
    analysis: RunAnalysis
    run: Run | None = None

    @property
    def title(self) -> str:
        """The title of the run."""
        return (self.run.title if self.run else "") or default_title(self.experiment)

    @property
    def environment(self) -> Environment | None:
        """The environment of the first result that has one; None without any."""
        found = (analyzed.result.environment for analyzed in self.analysis.results)
        return next((environment for environment in found if environment), None)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that something was measured on."""
        measured = (analyzed.device for analyzed in self.analysis.results if analyzed.measurement)
        return tuple(dict.fromkeys(device.title for device in measured if device))

    @property
    def when(self) -> str:
        """The moment it was measured, in words; empty where it is unknown."""
        stated = (self.run.created_utc if self.run else None) or (
            self.environment.started_utc if self.environment else ""
        )
        return f"{stated[:16].replace('T', ' ')} UTC" if stated else ""

    @property
    def facts(self) -> tuple[str, ...]:
        """Device, date and id, and what is unusual of how arrays lie, for a reader."""
        run_id = f"run {self.run.id}" if self.run else ""
        options = self.experiment.options
        return tuple(
            filter(None, (", ".join(self.devices), self.when, *array_conditions(options.layout, options.align), run_id))
        )
