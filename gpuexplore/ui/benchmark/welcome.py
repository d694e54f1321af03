"""Offers of features on the page Benchmark, before something is measured."""

from collections.abc import Sequence
from importlib import import_module

from gpuexplore.model import Device
from gpuexplore.registry import Place, features


def show_offers(place: Place, devices: Sequence[Device]) -> None:
    """Show what features offer at one place of the page, in their order."""
    for feature in features():
        if place in feature.offers:
            import_module(feature.offers[place]).offer(devices)
