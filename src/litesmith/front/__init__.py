"""The front door: the public functions that need more than one room, one file each.

bench.py      `bench`: latency, threads, copies, all targets
catalogue.py  `catalogue`: networks by name, and as files
profile.py    `profile`: time per op, traces
report.py     `report`: the page of a folder

A function here opens what the user names, hands it to the rooms below, writes the files that were
asked for, and returns one frozen result. Arguments have the names of the command line's options; a
command calls its function and prints the result.
"""
