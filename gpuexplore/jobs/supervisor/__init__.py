"""The process that measures what is queued, one per host: ``python -m gpuexplore.jobs.supervisor``."""
