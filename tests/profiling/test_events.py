"""Events on a timeline."""

from litesmith.profiling.events import Moment, Timeline
from tests import zoo

INVOKE, END = (1, 0, 0, "Invoke"), (32, 0, 0, "Invoke")


def moment(what: tuple[int, int, int, str], start: int = 0, us: int = 0) -> Moment:
    return Moment(*what, start, us)


def convnet_run(start: int) -> list[Moment]:
    """A run whose last op is a builtin kernel."""
    tags = ("Convolution (N)", "Convolution (N)", "Static Reshape (N)", "Fully Connected (N)")
    inside = [moment((8, n, 0, tag), us=10) for n, tag in enumerate(tags)]
    softmax = moment((2, 4, 0, "SOFTMAX"), start + 70, 20)
    return [moment(INVOKE, start, 100), *inside, softmax, moment(END)]


def test_times_that_xnnpack_does_not_tell_follow_each_other() -> None:
    (run,) = Timeline(zoo.convnet()).runs(convnet_run(1000))
    assert (run.start_us, run.us) == (1000, 100)
    assert [s.index for s in run.slices] == [0, 1, 2, 3, 4]
    assert [s.start_us for s in run.slices] == [1000, 1010.5, 1021, 1031.5, 1070]
    assert [s.us for s in run.slices] == [10.5] * 4 + [20]
    assert [s.kernel for s in run.slices] == ["xnnpack"] * 4 + ["builtin"]
    assert run.slices[4].name == "SOFTMAX scores"


def test_times_do_not_reach_into_the_next_known_one() -> None:
    events = convnet_run(1000)
    events[5] = moment((2, 4, 0, "SOFTMAX"), 1021, 20)
    (run,) = Timeline(zoo.convnet()).runs(events)
    assert [s.us for s in run.slices[:4]] == [5.25] * 4


def test_several_runs_and_one_that_is_cut_off() -> None:
    events = [*convnet_run(0)[3:], *convnet_run(1000), *convnet_run(2000), *convnet_run(3000)[:3]]
    runs = Timeline(zoo.convnet()).runs(events)
    assert [run.start_us for run in runs] == [1000, 2000]


def test_a_loop_counts_every_round() -> None:
    """Graph 0 calls graph 1 (the condition) and graph 2 (the body)."""
    events = [moment(INVOKE, 0, 100), moment((2, 0, 0, "WHILE"), 1, 98)]
    for start in (10, 40):
        events += [moment((1, 0, 1, "Invoke"), start, 5), moment((2, 0, 1, "LESS"), start, 5)]
        events += [moment((32, 0, 1, "Invoke")), moment((1, 0, 2, "Invoke"), start + 10, 9)]
        events += [moment((2, 0, 2, "ADD"), start + 10, 2), moment((8, 0, 2, "Add (ND)"), us=3)]
        events += [moment((32, 0, 2, "Invoke"))]
    (run,) = Timeline(zoo.loop()).runs([*events, moment(END)])
    assert run.entry == 0
    seen = [(s.graph, s.index) for s in run.slices]
    assert seen == [(0, 0)] + [(1, 0), (2, 0), (2, 1)] * 2
