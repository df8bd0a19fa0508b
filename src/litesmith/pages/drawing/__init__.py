"""Drawing without knowing what is drawn: markup, Markdown, graphs.

markdown.py  Markdown for a pull request
memory_plan.py  a plan of memory over time, a box a buffer
markup.py    HTML by construction; text is translated and escaped
page.py      sections as one HTML file
plot.py      scales, ticks, shapes and labels as values
png.py       a graph as a picture, for Markdown
svg.py       a graph as SVG; colours are classes of the page
tradeoff.py  cost against quality of every trial, as values

One geometry (`plot.py`) is drawn as SVG for pages and by Pillow for Markdown, so both show the
same.
"""
