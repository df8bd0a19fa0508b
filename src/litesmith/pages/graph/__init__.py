"""The page of graphs: one model or two, drawn on a canvas, coloured by what was measured.

findings_page.py  the pages of `doctor` and `compare`
graph_json.py     a view as JSON for the script
graph_page.py     the page of `view`
graph_section.py  the graph as a section of any page
graph_tables.py   the ops that matter most as tables, which are printed too
graph_words.py    every word of the script, in the reader's language
tuned_graph.py    the graph of what `tune` found, from its records

layout.js, colours.js, canvas.js, panel.js and start.js are one script; graph.css is its style. The
script draws on a canvas and makes elements of text: no name of a model is ever markup.
"""
