"""Text in the reader's language.

language.py  the language in use (`LANGUAGES`), and how it says a phrase
numbers.py   numbers as a language writes them

A phrase (`phrases.py`) is a template and its values. A language looks the exact template up in its
message catalogue and fills in the values; nothing is guessed. Compiled catalogues lie in `locale/`
here and are built, not committed; their sources are in `locale/` of the repository.

JSON, exported files and commands to copy are the same in every language. How to translate:
`docs/translate.md`.
"""
