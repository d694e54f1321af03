"""The first contact with a device: is what gpuexplore measures and computes there right? A report that can be sent.

A check is a file in `checks`, which says what must be true, and its line in `CHECKS`. What has to happen in the process
that measures is a file in `probes`. Cases of operations are measured by the core that measures all others.
"""
