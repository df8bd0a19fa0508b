"""A model on a target: sessions over LiteRT, and without it.

crashing_op.py     the op at which the runtime crashes
free_sizes.py      a model with free dimensions that does not open at the sizes in its file
gpu_trial.py       a model tried on the GPU in a child process: what it takes, how far it is off
guarded.py         a session in a process of its own, its arrays in memory that both share
session.py         `Session`: inputs and outputs as numpy arrays; values for inputs, given or random
trial_run.py       one trial run of an unknown file in a child process
accelerators/      the table of targets; compilers and runners other than LiteRT's CPU
devices/           machines over ssh and adb
rules/             which ops accelerators accept, where no compiler can be asked
litert/            LiteRT through its C API, its interpreter, and the target `numpy`
core/              targets, placements, runners, child processes

`Session` uses the classic interpreter where the compiled model would fail or, worse, answer wrongly
without a word. Seen with LiteRT 2.3.0: an output whose size depends on values, an output that is an
input or is listed twice (its memory is never written), variables and strings (refused), two inputs
of one name (the process aborts; a session numbers repeated names first).
"""
