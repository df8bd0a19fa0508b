"""Drawings that know nothing of their subject: markup, Markdown, graphs.

assets.py       styles and scripts as files of this package, and their hashes
bars.py         horizontal bars over an axis, with intervals
markdown.py     Markdown for a pull request
markup.py       HTML by construction; text is translated and escaped
memory_plan.py  a plan of memory over time, a box a buffer
page.py         sections as one HTML file
plot.py         scales, ticks, shapes and labels as values
png.py          a graph as a picture, for Markdown
svg.py          a graph as SVG; colours are classes of the page
tradeoff.py     cost against quality of every trial, as values
verdict_box.py  the box on top of a page: the verdict, its numbers, what to copy

One geometry (`plot.py`) is drawn as SVG for pages and by Pillow for Markdown, so both show the
same.
"""
