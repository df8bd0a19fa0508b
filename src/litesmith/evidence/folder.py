"""The folder of a command: its measurements, the best file so far, and one writer at a time."""

import os
import shutil
import stat
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from litesmith.errors import BadInput, os_reason
from litesmith.evidence.codec import Malformed, decode, dump, parse, read_record
from litesmith.evidence.log import Kinds, Log
from litesmith.evidence.measurement import Trial
from litesmith.ir.types import Model
from litesmith.operating_system import take_lock
from litesmith.tflite.file import digest, pieces, save, write_whole
from litesmith.units import plain

T = TypeVar("T")

# The records that tell which command owns a folder.
TUNE, BENCH, CHOOSE = "tune.json", "bench.json", "choose.json"
RETRAIN, GATE = "retrain.json", "gate.json"
RECORDS = {
    TUNE: "tune",
    BENCH: "bench",
    CHOOSE: "choose",
    RETRAIN: "retrain",
    GATE: "gate",
}

_OWN = ("front", "work", "evidence", "models")
_LOCK, _TRIALS, _RECIPE = ".lock", "trials.jsonl", "recipe.json"


class Folder:
    """Where a command keeps its evidence; every file is whole or absent.

    best.tflite    the best file so far
    front/         every model that no other beats, by name
    work/          models under trial; removed at the end
    trials.jsonl   the trials, one per line
    tune.json      the state of the search; other commands have a summary of their own
    recipe.json    how the best file was made
    evidence/      bulky details of single models, by digest
    """

    def __init__(self, path: Path, record: str = TUNE) -> None:
        self.path = path
        self._record = path / record
        self.best = path / "best.tflite"
        self.recipe = path / _RECIPE
        self._log = Log(path / _TRIALS)

    @contextmanager
    def hold(self) -> Generator[None]:
        """Makes and locks the folder; raises where another process holds it, or where it contains
        foreign files."""
        self._refuse_foreign()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise BadInput(
                "{path}: cannot be a folder to write to ({why}); choose another -o",
                self.path,
                os_reason(error),
            ) from None
        try:
            if not take_lock(handle):
                raise BadInput("{path}: another run is at work in it; choose another -o", self.path)
            self._sweep()
            yield
        finally:
            os.close(handle)  # closing also releases the lock

    def _refuse_foreign(self) -> None:
        others = [name for name in RECORDS if name != self._record.name]
        taken = next((name for name in others if (self.path / name).exists()), None)
        if taken is not None:
            raise BadInput(
                "{path}: holds what `litesmith {records}` wrote; choose another -o",
                self.path,
                RECORDS[taken],
            )
        if not self.path.is_dir():
            return
        if not self.is_used:  # only names are examined: the folder may be someone's home
            names = sorted(path.name for path in self.path.iterdir())
            foreign = [n for n in names if n != _LOCK and not n.startswith(".litesmith-")]
            if foreign:
                raise _refuse_folder(self.path, foreign[0])
        self._refuse_links()

    def _refuse_links(self) -> None:
        """Refuses links and pipes: the folder may come from a stranger, writing must stay inside
        it, and reading must end.
        """
        for place in _all_below(self.path):
            try:
                mode = place.lstat().st_mode
            except OSError:  # another run at work here has just removed it
                continue
            if stat.S_ISLNK(mode):
                raise BadInput(
                    "{link}: is a link, and what is written would land elsewhere; choose another "
                    "-o",
                    place,
                )
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise _refuse_folder(self.path, str(place.relative_to(self.path)))

    def _sweep(self) -> None:
        """Removes half-written files that a killed run left."""
        for place in (self.path, *(self.path / name for name in _OWN)):
            for torn in place.glob(".litesmith-*.part"):
                torn.unlink(missing_ok=True)

    # Records.

    @property
    def is_used(self) -> bool:
        return self._log.path.exists() or self._record.exists()

    def trials(self, kinds: Kinds[T]) -> tuple[Trial[T], ...]:
        """The trials, oldest first."""
        return self._log.read(kinds) if self._log.path.exists() else ()

    def add(self, trial: Trial[object]) -> None:
        self._log.append(trial)

    def summary(self, kind: type[T]) -> T | None:
        """The summary as it was last written; None where none was."""
        path = self._record
        try:
            return decode(kind, parse(read_record(path)))
        except FileNotFoundError:
            return None
        except (OSError, Malformed) as error:
            why = os_reason(error) if isinstance(error, OSError) else str(error)
            raise BadInput(
                "{path}: is not what `litesmith {records}` writes ({why}); choose another -o",
                path,
                RECORDS[path.name],
                why,
            ) from None

    def write_summary(self, value: object) -> None:
        _write(self._record, value)

    def write_recipe(self, value: object) -> None:
        _write(self.recipe, value)

    def write_evidence(self, name: str, value: object) -> None:
        """Writes bulky details under the digest of a model, or of their subject."""
        place = self._file("evidence", f"{name}.json")
        place.parent.mkdir(exist_ok=True)
        _write(place, value)

    def evidence(self, kind: type[T], name: str) -> T | None:
        """Reads the details with this name; None where there are none, or they are damaged."""
        try:
            return decode(kind, parse(read_record(self._file("evidence", f"{name}.json"))))
        except (OSError, Malformed):
            return None

    # Models.

    def work(self, name: str) -> Path:
        """The path of a model during its trial."""
        place = self._file("work", f"{name}.tflite")
        place.parent.mkdir(exist_ok=True)
        return place

    def training(self, name: str, key: str) -> Path:
        """The folder for the records of one training."""
        place = self._file("work", f"{name}-{key[:12]}.training")
        place.mkdir(parents=True, exist_ok=True)
        return place

    def keep(self, model: Model, name: str) -> Path:
        place = self.work(name)
        save(model, place)
        return place

    def found(self, name: str, wanted: str) -> Path | None:
        """The path of the model with this name and digest; None where that file is gone."""
        places = (self._file(folder, f"{name}.tflite") for folder in ("work", "front"))
        known = (*places, self.best)
        return next((p for p in known if p.is_file() and digest(p) == wanted), None)

    def ship(self, source: Path) -> None:
        """Makes a copy of this file the best so far."""
        if not self.best.exists() or digest(self.best) != digest(source):
            self.recipe.unlink(missing_ok=True)  # the recipe of the previous file
            write_whole(self.best, pieces(source))

    def unship(self) -> None:
        """Removes the best file."""
        self.best.unlink(missing_ok=True)
        self.recipe.unlink(missing_ok=True)

    def write_front(self, models: Mapping[str, Path]) -> None:
        """Writes the models on the front, and removes models that have left it."""
        place = self.path / "front"
        place.mkdir(exist_ok=True)
        for name, source in models.items():
            write_whole(self._file("front", f"{name}.tflite"), pieces(source))
        for old in place.glob("*.tflite"):
            if old.stem not in models:
                old.unlink()

    def _file(self, folder: str, name: str) -> Path:
        """A path inside one of the subfolders: names come from records, which a stranger may have
        written.
        """
        if Path(name).name != name or not name.isprintable() or "\\" in name:
            raise BadInput(
                "{path}: its records name {name!r}, which would lie elsewhere; choose another -o",
                self.path,
                plain(name),
            )
        return self.path / folder / name

    def tidy(self, keep: Collection[str] = ()) -> None:
        """Removes tried models, except those that take long to rebuild."""
        place = self.path / "work"
        for path in list(place.glob("*")):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.stem not in keep:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            place.rmdir()


@contextmanager
def hold_folder(out: Path | None, record: str) -> Generator[Folder | None]:
    """Locks the folder for the evidence; yields None without a folder."""
    if out is None:
        yield None
        return
    folder = Folder(out, record)
    with folder.hold():
        yield folder


def _all_below(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        yield from (Path(folder, name) for name in (*folders, *files))


def _refuse_folder(path: Path, foreign: str) -> BadInput:
    return BadInput(
        "{path}: holds other files, as {foreign!r}; choose another -o", path, plain(foreign)
    )


def _write(place: Path, value: object) -> None:
    write_whole(place, [dump(value, indent=1).encode()])
