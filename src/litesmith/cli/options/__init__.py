"""Options that several commands share, each declared once, and how they are parsed.

command_line.py    arguments before they are parsed: `--lang`, switches as `benchmark_model` takes
                   them
declare.py         commands and options as values, and as the parser takes them
examples.py        commands to copy at the end of each help
panels.py          the panels of options in help
shared_options.py  options that several commands have; importing them needs no more than a parser
topics.py          first steps, groups of commands, and the pages of `litesmith help`
wrapping.py        text in columns of a terminal

An option has the same name, help and meaning in every command, and the name of the argument in
Python.
"""
