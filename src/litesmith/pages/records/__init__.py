"""The records in the folders of commands, read so that anything may be missing.

glance.py          a run as one row, whatever its command
record_words.py    records in words: every number with its interval
retrain_folder.py  the folder of `retrain`: a row for each class, and the rest
salvage_folder.py  reads the files of a folder as far as possible
tune_folder.py     the folder of `tune`: a row for each model, and the rest

The types are those of `evidence`. A missing or damaged value is an empty place on the page, never
an exception, and its reason is on the page too.
"""
