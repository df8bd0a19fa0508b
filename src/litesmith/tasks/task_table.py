"""The table of tasks, and the task that data and model are for."""

from pathlib import Path

from litesmith.arguments import argument
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.tasks.detection import DETECTION
from litesmith.tasks.keypoints import KEYPOINTS
from litesmith.tasks.questions import QUESTIONS
from litesmith.tasks.segmentation import SEGMENTATION
from litesmith.tasks.speech import SPEECH
from litesmith.tasks.task import Settings, Task
from litesmith.tasks.texts import TEXT
from litesmith.tasks.user_task import users_task
from litesmith.units import plain

# In the order in which they are recognised.
TASKS: dict[str, Task] = {
    "keypoints": KEYPOINTS,
    "detection": DETECTION,
    "segmentation": SEGMENTATION,
    "speech": SPEECH,
    "text": TEXT,
    "questions": QUESTIONS,
    "classification": Task(phrase("classification"), ("top1", "top5", "auc", "labels_f1")),
    "regression": Task(phrase("regression"), ("rmse", "mae")),
    "anomaly": Task(phrase("anomaly detection"), ("anomaly_auc",)),
    "embedding": Task(phrase("embedding"), ("retrieval",)),
}


def task_named(name: str) -> Task:
    """The task of that name, from the table or given by the user."""
    own = users_task(name)
    if own is not None:
        return own.as_task()
    if ":" in name:
        raise BadInput(
            "the task {name} is code, and a file that is read brings none; read the code, then "
            "give it yourself with {task}",
            plain(name),
            argument("task", plain(name)),
        )
    if name not in TASKS:
        raise BadInput("no task {name!r}; there are {tasks}", name, ", ".join(TASKS))
    return TASKS[name]


def recognise(source: Path, model: Model, settings: Settings) -> str:
    """The name of the task that a source and a model look like; "" where none is certain."""
    for name, task in TASKS.items():
        if task.is_given is not None and task.is_given(source, model, settings):
            return name
    return ""
