"""A search in words and numbers: its summary, and the one sentence that matters."""

from collections.abc import Iterator
from dataclasses import replace
from shlex import split

from litesmith._version import VERSION
from litesmith.data.sample_splits import items
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import FLOAT, NextStep, Tried, TuneData, TunedModel, TuneSummary
from litesmith.installing import install_command
from litesmith.micro.boards import BOARDS
from litesmith.micro.memory_report import buffer_name, report_memory
from litesmith.micro.plan_file import OVERLAPS
from litesmith.operating_system import quote, quote_all
from litesmith.phrases import join, phrase
from litesmith.run.litert.own_kernels import own_kernels
from litesmith.search.trial.budget import (
    KEPT,
    LIKELY,
    PROVEN,
    UNSURE,
    at_look,
    describe_score,
    speed_and_times,
    verdict,
)
from litesmith.search.trial.target_place import describe_left
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.proof import Proof, find_whole
from litesmith.search.tuning.replay import RecipeFile
from litesmith.search.tuning.tree_walk import LEAST_TO_TRAIN, Search
from litesmith.tflite.file import load
from litesmith.timing.statistics import SAME, UNCLEAR, UNKNOWN, speed_interval
from litesmith.training.recipe_context import has_torch
from litesmith.units import bytes_text, factor_text, number_text, plain, time_text

# The number of buffers and boards to name.
_NAMED = 4


def summarize(search: Search, state: str, proof: Proof | None = None) -> TuneSummary:
    """Summarizes the present state of a search."""
    request, first = search.request, search.trials.records.get(FLOAT)
    warnings = proof.warnings if proof else ()
    taken = _own_ops(search, proof) if proof else 0
    if taken:
        needed = phrase(
            "{taken} of its ops run on Litesmith's kernels: in a stock runtime, int16 data "
            "and sparse layers take their usual time",
            taken,
        )
        warnings = (*warnings, needed)
    if proof is not None and search.trials.goal.place.is_micro:
        warnings = (*warnings, *_memory_limit(search, proof))
    return TuneSummary(
        schema=1,
        model=request.model.name,
        model_digest=search.trials.digest,
        version=VERSION,
        command=request.command,
        state=state,
        request=search.wanted,
        data=_data(search),
        verdict=proof.verdict or None if proof else None,
        sentence=sentence(search, proof),
        best=_best(search, proof),
        nearest=_nearest(proof),
        first=_first(first, proof) if first else None,
        front=proof.front if proof else (),
        keys=search.trials.keys,
        warnings=warnings,
        path=tuple(search.path),
        threads=proof.threads if proof else (),
        next=tuple(next_steps(search, proof)),
        environment=search.environment,
        seconds=search.seconds,
        untried=tuple(search.untried),
        model_path=str(request.model.absolute()),
    )


def _own_ops(search: Search, proof: Proof) -> int:
    """The number of ops of the shipped model that Litesmith's own kernels run, where they were
    requested."""
    if proof.shipped is None or not search.trials.goal.place.has_own_kernels:
        return 0
    return own_kernels().place(load(search.trials.file(proof.shipped))).taken


def _memory_limit(search: Search, proof: Proof) -> Iterator[str]:
    """What limits the RAM of a microcontroller: the tensors at the peak, and permanent buffers."""
    record = proof.shipped or proof.verified
    if record is None:
        return
    path = search.trials.file(record)
    found = report_memory(record.name, load(path), path.stat().st_size)
    yield phrase(
        "what limits {name}: {live} are live at {place} ({buffers}), and {lasting} last",
        record.name,
        bytes_text(found.live.get(found.peak, 0)),
        found.peak_place,
        ", ".join(f"{buffer_name(b)} {bytes_text(b.bytes)}" for b in found.peak_buffers()[:_NAMED]),
        bytes_text(found.device.lasting_bytes),
    )


def _data(search: Search) -> TuneData:
    split, data = search.split, search.request.data
    other = search.request.calibration
    preparation = data.items.preparation
    return TuneData(
        source=data.source,
        calibration_source=None if other is None else other.source,
        calibration=items(split.calibration),
        search=items(split.search),
        held_out=items(split.held_out),
        preparation="" if preparation is None else preparation.text,
        notes=data.notes,
    )


def _model(record: TriedModel) -> TunedModel:
    details = record.details
    return TunedModel(
        name=record.name,
        recipe=record.recipe,
        digest=record.digest,
        bytes=details.bytes,
        gzip_bytes=details.gzip_bytes,
        peak_bytes=details.peak_bytes,
        is_integer=details.is_integer,
        placed=details.placed,
        accuracy=details.accuracy,
        latency=details.latency,
        ram_bytes=details.ram_bytes,
        flash_bytes=details.flash_bytes,
    )


def _proven(record: TriedModel, proof: Proof) -> TunedModel:
    """The model with the results of the proof."""
    found = _model(record)
    if proof.verified is None:
        return found
    return replace(
        found,
        accuracy=proof.verified.accuracy,
        latency=proof.speed,
        target=proof.target,
        scored_on=proof.verified.details.scored_on,
        file="best.tflite" if proof.shipped is not None else "",
    )


def _best(search: Search, proof: Proof | None) -> TunedModel | None:
    best = proof.shipped if proof else search.best
    if best is None:
        return None
    if proof is None:
        return _model(best)
    return replace(_proven(best, proof), whole_on=find_whole(search.trials, best))


def _nearest(proof: Proof | None) -> TunedModel | None:
    if proof is None or proof.verified is None or proof.shipped is not None:
        return None
    return _proven(proof.verified, proof)


def _first(first: TriedModel, proof: Proof | None) -> TunedModel:
    """The original model, with its score on held-out samples once these were used."""
    found = _model(first)
    if found.latency is not None and proof is not None and proof.speed is not None:
        found = replace(found, latency=found.latency.beside(proof.speed.float_us))
    held = proof.verified.accuracy if proof and proof.verified else None
    paired = held.against if held else None
    if held is None or paired is None or paired.reference is None:
        return found
    score = Score(
        metric=held.metric,
        title=held.title,
        unit=held.unit,
        value=paired.reference,
        low=paired.reference_low,
        high=paired.reference_high,
        n=held.n,
    )
    return replace(found, accuracy=score)


def sentence(search: Search, proof: Proof | None) -> str:
    """The result in one sentence, including what there was no time for."""
    told = _outcome(search, proof)
    if proof is None or not search.untried:
        return told
    return phrase("{told}; not tried for lack of time: {names}", told, ", ".join(search.untried))


def _outcome(search: Search, proof: Proof | None) -> str:
    budget = search.request.budget.text
    if proof is None:
        best = search.best
        if best is None:
            return phrase("nothing meets the budget so far: {budget}", budget)
        return phrase("{name} is the best so far; not yet proven on held-out samples", best.name)
    if proof.verdict == KEPT:
        return _keep_yours(search, proof)
    if proof.verified is None and search.untried:
        return phrase("the time was over before anything met the budget: {budget}", budget)
    if proof.verified is None:
        return phrase("no version of this model meets the budget: {budget}", budget)
    accuracy = proof.verified.accuracy
    assert accuracy is not None  # what was verified was scored
    score = describe_score(accuracy, proof.verified.room)
    samples = accuracy.held_out_text
    verified, limits = proof.verified, search.request.limits
    over = limits.misses(verified.details, verified.p50_us)
    if proof.shipped is None and over:
        within = ", ".join((budget, *search.request.limits.texts))
        near = f"{proof.verified.name}: {score}, {samples}; {'; '.join(over)}"
        return phrase("nothing meets the budget ({within}); nearest is {near}", within, near)
    if proof.shipped is None:
        return phrase(
            "nothing meets the budget ({budget}); nearest is {name}: {score}, {samples}",
            budget,
            proof.verified.name,
            score,
            samples,
        )
    by = phrase("{samples}{kernels}", samples, _kernels(search, proof.verified))
    found = proof.verdict
    if found == UNSURE:  # of its speed
        room = at_look(proof.verified.room, proof.verified.details.look or 1)
        found = verdict(room)
    judged = {
        PROVEN: phrase("{score}, proven to meet the budget: {budget} ({by})", score, budget, by),
        LIKELY: phrase("{score}, likely to meet the budget: {budget} ({by})", score, budget, by),
    }
    gains = join(_gains(search, proof, proof.shipped), ", ")
    left = describe_left(proof.shipped.details.placed)
    return "; ".join(
        filter(
            None,
            (phrase("{name} is {gains}", proof.shipped.name, gains), left, judged[found]),
        )
    )


def _keep_yours(search: Search, proof: Proof) -> str:
    """The sentence where nothing beats the original beyond the noise: what came nearest."""
    what = phrase(search.request.minimize)
    told = phrase(
        "nothing better was found; keep yours: no file beats it in {what} beyond the noise", what
    )
    if proof.verified is None:
        return told
    gains = join(_gains(search, proof, proof.verified), ", ")
    return phrase("{told} ({name} is {gains})", told, proof.verified.name, gains)


def _kernels(search: Search, verified: TriedModel) -> str:
    """Which kernels computed the scores, where the model is to run elsewhere."""
    place = search.trials.goal.place
    same = verified.details.scored_on == str(place.proves) and place.runs is not None
    return "" if place.cpu is not None or same else phrase(" by the CPU's kernels")


def _gains(search: Search, proof: Proof, model: TriedModel) -> list[str]:
    """How much faster and smaller the model is; differences inside the noise are left out."""
    own = phrase("Litesmith's kernels") if _own_ops(search, proof) else ""
    is_told = proof.verdict == UNSURE  # first of all, of the speed
    gains = list(_time_gains(search, None if is_told else proof.speed, own))
    first = search.trials.records[FLOAT]
    gains += _memory_gains(first, model)
    words = (("size", phrase("smaller")), ("download", phrase("smaller to download")))
    for kind, word in words:
        before, after = first.cost(kind), model.cost(kind)
        if before and after and before / after > 1.02:
            gains.append(factor_text(before / after, word))
    return gains or [phrase("no smaller")]


def _memory_gains(first: TriedModel, model: TriedModel) -> Iterator[str]:
    """The memory of a model on a microcontroller, beside the original's."""
    was, now = first.details, model.details
    if was.ram_bytes and now.ram_bytes:
        less = factor_text(was.ram_bytes / now.ram_bytes, phrase("smaller in RAM"))
        yield phrase("{less} ({now})", less, bytes_text(now.ram_bytes))
    if was.flash_bytes and now.flash_bytes:
        less = factor_text(was.flash_bytes / now.flash_bytes, phrase("smaller in flash"))
        yield phrase("{less} ({now})", less, bytes_text(now.flash_bytes))


def _time_gains(search: Search, speed: Speed | None, own: str) -> Iterator[str]:
    """How much faster than the float model; or an estimate, where nothing ran."""
    place = search.trials.goal.place
    if speed is None or speed.ratio is None:
        if speed is not None and speed.p50_us is not None:
            yield phrase("estimated to take {time} on {place}", time_text(speed.p50_us), place)
        return
    on = own if place.cpu is not None else str(place)
    words, times = speed_and_times(speed)
    if speed.verdict == UNCLEAR:
        yield phrase("of unclear speed (the machine was busy)")
        return
    if speed.verdict == UNKNOWN:
        words = phrase("of unknown speed")
    if speed.verdict == SAME:
        words = phrase("as fast, as far as can be told")
    ends = speed_interval(speed.low, speed.high, speed.verdict)
    words = phrase("{words} {interval}", words, ends) if ends else words
    yield (
        phrase("{speed} on {on} ({times})", words, on, times)
        if on
        else phrase("{speed} ({times})", words, times)
    )


def next_steps(search: Search, proof: Proof | None) -> list[NextStep]:
    """What the user can do next."""
    request = search.request
    model, data = (quote(plain(text)) for text in (str(request.model), request.data.source))
    same = request.command or phrase("the same call")

    def again(words: str, purpose: str) -> NextStep:
        step = NextStep(words, purpose)
        return step if request.command else NextStep("", step.text)

    if proof is None:
        return [again(same, phrase("resumes where it stopped"))]
    more = [again(_longer(search, same), phrase("tries what there was no time for"))]
    if search.untried and proof.shipped is None:
        return more
    if proof.verdict == UNSURE:
        purpose = phrase("times the models again; close other programs first")
        return [again(same, purpose)]
    if proof.verdict == KEPT:
        return [NextStep("", words) for words in _other_goals(search)]
    if proof.shipped is not None:
        best = quote(str(search.folder.best))
        if search.trials.goal.place.is_micro:
            purpose = phrase("the C array, and the ops that it needs")
            overlap = search.request.overlap
            how = "" if overlap == OVERLAPS[0] else f" --overlap {overlap}"
            return [NextStep(f"litesmith export {best} --c firmware{how}", purpose)]
        if search.trials.goal.place.runs is None:
            purpose = phrase("what every accelerator makes of it")
            return [NextStep(f"litesmith targets {best} --compile", purpose)]
        purpose = phrase("measure again on this machine")
        timed = NextStep(f"litesmith bench {best} --on {proof.target}", purpose)
        return [timed, *(more if search.untried else [])]
    if proof.verified is not None and proof.verified.room.estimate >= 0:
        return [NextStep("", words) for words in _over_the_ceiling(search, proof.verified)]
    purpose = phrase("which layers lose it, and why")
    steps = [NextStep(f"litesmith doctor {model} --data {data}", purpose)]
    if not has_torch():
        purpose = phrase("training may win back what is lost")
        steps.append(NextStep(install_command("train"), purpose))
    elif items(search.split.calibration) < LEAST_TO_TRAIN:
        words = phrase(
            "{least_to_train} samples to calibrate on, with --calibrate: training needs that many",
            LEAST_TO_TRAIN,
        )
        steps.append(NextStep("", words))
    words = phrase("more samples to calibrate on, with --calibrate, or a larger budget")
    return [*steps, NextStep("", words)]


def _longer(search: Search, same: str) -> str:
    """The same command with twice the time, which resumes where this search ended."""
    minutes = search.request.minutes
    if not search.request.command or minutes is None:
        return phrase("{command} with more minutes", same)
    words = [word for word in split(search.request.command) if word != "--resume"]
    if "--minutes" in words:
        place = words.index("--minutes")
        del words[place : place + 2]
    words = [word for word in words if not word.startswith("--minutes=")]
    return f"{quote_all(words)} --resume --minutes {number_text(2 * minutes)}"


def _other_goals(search: Search) -> list[str]:
    """Other goals worth asking for where nothing beats the original."""
    others = " or ".join(one for one in ("latency", "size") if one != search.request.minimize)
    return [phrase("--minimize {goal}: asks for another gain; or a larger budget", others)]


def _over_the_ceiling(search: Search, nearest: TriedModel) -> list[str]:
    """Advice where accuracy is fine and a ceiling is exceeded."""
    if search.trials.goal.place.is_micro:
        return list(_larger_boards(nearest.details))
    if not search.request.limits.texts:
        return [phrase("your model is the best there is: no file within the budget costs less")]
    steps: list[str] = [phrase("higher limits, or a smaller model to start from")]
    if search.request.minimize == "latency" and search.request.limits.max_bytes is not None:
        steps.insert(0, phrase("--minimize size: tries whatever makes the file smaller"))
    return steps


def _larger_boards(nearest: Tried) -> Iterator[str]:
    """The bytes that would be needed, and the boards that have them."""
    ram, flash = nearest.ram_bytes or 0, nearest.flash_bytes or 0
    boards = [board.name for board in BOARDS if board.ram >= ram and board.flash >= flash]
    needed = phrase("{ram} of RAM, {flash} of flash", bytes_text(ram), bytes_text(flash))
    yield phrase(
        "{name} needs {needed}: {boards}",
        nearest.name,
        needed,
        ", ".join(boards[:_NAMED]) or phrase("no board of the table has that"),
    )


def recipe_file(search: Search, record: TriedModel) -> RecipeFile:
    """The recipe file from which the best model can be rebuilt."""
    model, place = quote(str(search.request.model)), quote(str(search.folder.recipe))
    return RecipeFile(
        schema=1,
        recipe=record.recipe,
        input_digest=search.trials.digest,
        digest=record.digest,
        command=f"litesmith apply {model} {place} -o OUT.tflite",
        version=VERSION,
        calibration_digest=search.split.calibration.digest,
        opened=search.request.opened,
        training=search.trials.goal.training,
    )
