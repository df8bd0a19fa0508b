"""Reports: the contents of a command's folder as a page, as Markdown, and in a notebook.

bench_page.py     the page of `bench --on all`
choose_graphs.py  the records of `choose`, and their graphs
choose_page.py    the page of `choose`
folder_kinds.py   the kinds of folders, recognised by the record that each holds (`KINDS`)
gate_page.py      a gate's verdict as a page, Markdown and JUnit XML
overlay.py        numbers on a model's graph: node data for Model Explorer
retrain_page.py   the page of `retrain`
runs_page.py      several runs side by side, with a filter
tune_page.py      the page of `tune`
graph/            graphs of models: the page of `view`, and a section of other pages
records/          the contents of folders, read tolerantly
sections/         the sections of the page of `tune`
drawing/          HTML, Markdown, SVG and PNG

A page is made from records alone: no model is run and nothing is measured, so that `litesmith
report DIR` makes the same page on any machine and in any language.

A page is one self-contained file: style, script and graphs are inside.
"""
