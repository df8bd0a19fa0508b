"""One trial run of an unknown file in a child process, so that native code that crashes takes
nothing with it."""

import os

from litesmith.errors import CannotRun
from litesmith.ir.model_text import op_name
from litesmith.run.core.child_process import Crashed, answer, ask
from litesmith.run.core.target import Target
from litesmith.run.crashing_op import find_crashing_op
from litesmith.run.free_sizes import why_unsized
from litesmith.run.session import Session, Source, fill_inputs
from litesmith.tflite.file import load

_SECONDS = 120.0


def probe(path: str | os.PathLike[str], target: str | Target = "cpu:1") -> None:
    """Raises CannotRun where opening the model or running it once fails or kills the process."""
    try:
        ask("litesmith.run.trial_run", path, str(target), seconds=_SECONDS)
    except CannotRun as error:
        model = load(path)
        unsized = why_unsized(model)
        if unsized is not None:
            raise unsized from None
        if not isinstance(error, Crashed):
            raise
        place = find_crashing_op(path, str(target))
        if place is None:
            raise
        raise CannotRun(
            "{path}: {op_name} crashes the runtime on {target} ({name}): it has no kernel for the "
            "op as it is, or the model is damaged; litesmith targets MODEL has other places to run "
            "it",
            path,
            op_name(model.main.ops[place]),
            target,
            error.how,
        ) from None


def probe_source(source: Source, target: str | Target = "cpu:1") -> None:
    """The same for a file; a model in memory was already read, or made, by this process."""
    if isinstance(source, str | os.PathLike):
        probe(source, target)


def _run_once(path: str, target: str) -> None:
    with Session(path, target) as session:
        fill_inputs(session)
        session.run()


if __name__ == "__main__":
    answer(_run_once)
