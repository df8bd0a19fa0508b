"""The front door: the public functions that need more than one room, one file each.

A function here opens what the user names, hands it to the rooms below, writes the files that were
asked for, and returns one frozen result. Arguments have the names of the command line's options;
a command calls its function and prints the result.
"""
