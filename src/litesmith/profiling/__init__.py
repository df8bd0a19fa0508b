"""Where the time of a run goes, op by op, and traces. `span` and `record` are defined here.

alignment.py  which op each event of the profiler belongs to (`TAGS`: XNNPACK's names)
events.py     the profiler's events as slices on a timeline
op_times.py   every op with its time, kernel and speed: runs with and without profiling, in turns
trace.py      traces for Perfetto and Chrome, including the application's own spans

XNNPACK reports durations in whole microseconds and no starts: half a microsecond is added to each,
and a trace lays ops end to end. Profiling costs about 6 µs per op outside the op's own time;
unprofiled runs of the same series show how much.
"""
