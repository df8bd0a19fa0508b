"""The command line: words in, words out.

call.py             how every command works: a public function called, its result printed
commands/           the table of commands: their words, and the function that prints each result
completion.py       completion in the shell
convert_sources.py  sources of other tools, converted before a command sees them
guard.py            runs a command in a child process, and watches over it
main.py             the program; an error becomes one line and an exit status
options/            options that several commands share, declared once
settings_file.py    `litesmith.toml` beside a model: options that apply without being typed
shape_option.py     `--shape`: copies of the models in other sizes, under the names that were typed
streams.py          standard input, output and error, even if the program was started without them
text/               how results print: tables for people

A command holds no logic. It calls the public function of the same name (`litesmith.tune` …) with
the same arguments, so that whatever works in the shell works in Python.

Exit status 0 is fine, 1 is a result that misses what was asked, 2 is bad input, 70 is a bug of
ours, 130 is Ctrl-C. With `--json` a command prints one JSON object, whose keys are part of the
interface.
"""
