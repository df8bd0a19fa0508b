"""Completion of commands in the shell: bash, zsh and fish by the parser, PowerShell by our own
script.
"""

import os
from collections.abc import Mapping

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from litesmith.errors import BadInput

SHELLS = ("bash", "zsh", "fish", "powershell")

# How each shell loads what `litesmith completion SHELL` prints.
INSTALL = {
    "bash": "echo 'eval \"$(litesmith completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(litesmith completion zsh)\"' >> ~/.zshrc",
    "fish": "litesmith completion fish > ~/.config/fish/completions/litesmith.fish",
    "powershell": "litesmith completion powershell >> $PROFILE",
}

_VARIABLE = "_LITESMITH_COMPLETE"
_PROGRAM = "litesmith"

_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $cursor)
    $before = @{}
    $set = @{
        %(complete_var)s = "powershell_complete"
        COMP_WORDS = "$line"
        COMP_CWORD = "$word"
    }
    foreach ($name in $set.Keys) {
        $before[$name] = [Environment]::GetEnvironmentVariable($name)
        [Environment]::SetEnvironmentVariable($name, $set[$name])
    }
    try {
        %(prog_name)s | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            $kind = [System.Management.Automation.CompletionResultType]::ParameterValue
            [System.Management.Automation.CompletionResult]::new($value, $value, $kind, $help)
        }
    } finally {
        foreach ($name in $set.Keys) {
            [Environment]::SetEnvironmentVariable($name, $before[$name])
        }
    }
}
"""


class _PowerShell(ShellComplete):
    """Reads PowerShell's request and formats the answer: a line with a value and its help."""

    name = "powershell"
    source_template = _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
        begun = os.environ.get("COMP_CWORD", "")
        return (words[:-1] if begun and words else words), begun

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.value}\t{item.help or ''}".rstrip()


def is_asked(environment: Mapping[str, str]) -> bool:
    """True where a shell asks for completions, so that no command is run."""
    return bool(environment.get(_VARIABLE))


def answer_shell(app: click.Command) -> int:
    """Prints the requested completions; returns the exit status."""
    add_completion_class(_PowerShell)
    return shell_complete(app, {}, _PROGRAM, _VARIABLE, os.environ[_VARIABLE])


def write_script(app: click.Command, shell: str) -> str:
    """The script that a shell runs to complete our commands."""
    add_completion_class(_PowerShell)
    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise BadInput("no completion for {shell!r}; there are {shells}", shell, ", ".join(SHELLS))
    made = found(app, {}, _PROGRAM, _VARIABLE)
    return made.source_template % made.source_vars()
