"""What the folders of commands hold, read so that anything may be missing.

glance.py          a run in a row, whatever command it is of
record_words.py    records in words: every number with its interval
retrain_folder.py  what `retrain` wrote: a row for each class, and the rest
salvage_folder.py  the files of a folder as far as they can be read
tune_folder.py     what `tune` wrote: a row for each model, and the rest

The types are those of `evidence`. A missing or damaged value is an empty place on the page, never
an exception, and its reason is on the page too.
"""
