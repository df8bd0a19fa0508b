"""Help: every option in its panel, examples that parse, pages that fit a terminal."""

import shlex
from collections import Counter

import click
import pytest
from rich.cells import cell_len

from litesmith.cli.call import call
from litesmith.cli.commands import COMMANDS
from litesmith.cli.main import make_app
from litesmith.cli.options.declare import make_click
from litesmith.cli.options.examples import EXAMPLES
from litesmith.cli.options.panels import PANELS, place_of
from litesmith.cli.options.topics import GROUPS, TOPICS
from litesmith.lang import language
from litesmith.lang.language import LANGUAGES
from litesmith.passes import STEPS
from litesmith.passes.core.recipe import parse, text_of
from litesmith.search.trial.target_place import Place
from tests.cli.test_cli import litesmith

WIDTH = 80


@pytest.fixture(params=LANGUAGES)
def spoken(request: pytest.FixtureRequest):
    language.use(request.param)
    yield request.param
    language.use("en")


def names_of(command: str) -> list[list[str]]:
    click_names = [p.opts for p in make_click(command, COMMANDS[command], call).params]
    return [opts for opts in click_names if opts[0].startswith("-")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_its_panel(command: str) -> None:
    for names in names_of(command):
        assert 0 <= place_of(command, names)[0] < len(PANELS)


def test_panels_name_options_that_there_are() -> None:
    there = {n for command in COMMANDS for names in names_of(command) for n in names} | {"--help"}
    for panel in PANELS:
        for name in panel.options:
            command, _, option = name.rpartition(" ")
            assert option in there
            assert not command or [option] in names_of(command)
    assert max(Counter(name for p in PANELS for name in p.options).values()) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_of_help_fits_a_terminal(command: str, spoken: str) -> None:
    made = make_click(command, COMMANDS[command], call)
    page = made.get_help(click.Context(made, info_name=f"litesmith {command}", terminal_width=80))
    for line in page.splitlines():
        assert cell_len(line) <= WIDTH, line
    assert all(words in page for words, _ in EXAMPLES[command])


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_can_be_typed(command: str) -> None:
    assert len(EXAMPLES[command]) >= 2
    for words, _ in EXAMPLES[command]:
        program, name, *rest = shlex.split(words)
        assert (program, name) == ("litesmith", command)
        made = make_click(command, COMMANDS[command], call)
        made.make_context(command, rest).close()  # raises on what is no option


def test_every_command_is_in_one_group() -> None:
    assert sorted(name for _, names in GROUPS for name in names) == sorted(COMMANDS)


def test_alone_it_says_what_to_do() -> None:
    shown = litesmith()
    lines = shown.stdout.splitlines()
    assert shown.returncode == 0 and not shown.stderr
    assert len(lines) <= 10 and max(map(len, lines)) <= WIDTH
    assert sum(line.startswith("  litesmith ") for line in lines) == 3


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_fits_a_terminal(topic: str) -> None:
    shown = litesmith("help", topic)
    assert shown.returncode == 0 and not shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= WIDTH
    assert all(words in shown.stdout for words, _ in TOPICS[topic].rows)


def test_the_topic_of_recipes_has_every_step() -> None:
    rows = [words.partition("(")[0] for words, _ in TOPICS["recipes"].rows]
    assert rows == sorted(STEPS)


def test_the_topic_of_targets_has_targets() -> None:
    for words, _ in TOPICS["targets"].rows:
        for name in words.split(", "):
            assert name == "all" or str(Place.parse(name)) == name


def test_help_of_a_command_and_of_nothing() -> None:
    assert litesmith("help", "diff").stdout == litesmith("diff", "--help").stdout
    assert litesmith("help").stdout == litesmith("--help").stdout
    refused = litesmith("help", "nothing")
    assert refused.returncode == 2
    assert refused.stderr.startswith("litesmith: no help on 'nothing'; there are data, ")


def test_the_list_of_commands_names_them_all() -> None:
    app = make_app()
    assert {*app.list_commands(click.Context(app))} == {*COMMANDS, "help", "completion"}


@pytest.mark.parametrize("recipe", [typed for typed, _ in TOPICS["recipes"].rows])
def test_every_recipe_that_help_shows_is_one(recipe: str) -> None:
    assert text_of(parse(recipe)).partition("(")[0] == recipe.partition("(")[0]
