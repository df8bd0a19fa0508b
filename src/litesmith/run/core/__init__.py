"""What everything that runs a model shares.

child_process.py  work in a child process: its memory, noise and crashes stay there; a model tried
                  there first
placement.py      `Placement`: where each op goes on a target, and why
runner.py         what a session needs of whatever runs its model
target.py         `Target`: where a model runs, as text
"""
