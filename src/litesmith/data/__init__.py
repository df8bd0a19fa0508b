"""Turns what a user has into samples that a model can run.

answers.py             the answers of models: one pass over the data for all of them, on every core
audio.py               clips at a model's rate and length
data_digest.py         whether a file or folder has changed, before anything is decoded
file_lists.py          files with a label each: from a folder, from class folders, from a table
groups.py              which samples are independent: copies, near copies, the user's own groups
guess_norm.py          normalisation and label offset, guessed if they are not stated
images.py              finding, decoding and cropping images, several at a time
label_tables.py        tables of files and labels, and of numbers
lint.py                what is wrong with data, before any long work (`RULES`)
opened_samples.py      the samples that `open_data` returns: chosen items, prepared when read
preparation.py         normalisation, size and label offset
readers.py             every kind of source as numbered items and their labels
sample_splits.py       splits samples by their contents: some for the work, others to judge it by
samples.py             what a sample is, and an item in it; `Data`
settle_preparation.py  normalisation and label offset: stated by the user or the model,
                       or guessed
shipping.py            models and samples on their way to other machines
sources.py             `open_data`: a folder, arrays, a generator or a function as `Data`
task_rows.py           boxes, masks, transcripts and answers: the items of a task
unusable_items.py      items that cannot be read: named, counted, left out or refused
user_functions.py      the user's functions, named as `module:function`

Every decision made for the user (a normalisation, a label offset) becomes a note that is shown. The
order of samples never changes a result.
"""
