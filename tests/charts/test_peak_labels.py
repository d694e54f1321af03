from gpuexplore.charts.points import PeakLine, peak_labels


def labels(*lines):
    return peak_labels([PeakLine(*line) for line in lines], lambda rate: f"{rate:g} FLOP/s")


def test_peaks_of_devices_are_named_by_kind_and_device_where_these_differ():
    assert labels(("cpu", "fp16", "datasheet peak", 4.0), ("cpu", "fp32", "datasheet peak", 4.0)) == {
        "fp32, fp16, datasheet peak: 4 FLOP/s": 4.0
    }

    assert labels(("cpu", "fp32", "ceiling", 2.0), ("recorded", "fp32", "ceiling", 4.0)) == {
        "fp32: recorded 4 FLOP/s": 4.0,
        "fp32: cpu 2 FLOP/s": 2.0,
    }

    assert labels(("cpu", "fp32", "ceiling", 100.0), ("recorded", "fp32", "ceiling", 101.0)) == {
        "fp32: cpu 100 FLOP/s, recorded 101 FLOP/s": 100.0
    }

    assert list(labels(("cpu", "fp32", "ceiling", 1.0), ("cuda:0", "fp32", "datasheet peak", 9.0))) == [
        "fp32, ceiling: cpu 1 FLOP/s",
        "fp32, datasheet peak: cuda:0 9 FLOP/s",
    ]

    assert list(labels(("cpu", "", "measured bandwidth", 7.0), ("recorded", "", "measured bandwidth", 9.0))) == [
        "measured bandwidth: recorded 9 FLOP/s",
        "measured bandwidth: cpu 7 FLOP/s",
    ]
