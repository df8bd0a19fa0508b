"""Machines other than this one, on which models are timed.

adb.py        Android phones, timed by the user's own `benchmark_model`
address.py    `ssh://pi@kitchen/cpu:4`, `adb://SERIAL/cpu:4` as values (`TRANSPORTS`)
agent.py      the program that is sent to a device; it opens models and times their runs there
condition.py  heat, kinds of cores and screen of a device, from the files that it has
ssh.py        Linux machines over one ssh connection

Times come from the device's own clock. A device that disappears raises `Lost` with the times so
far, and the command keeps them. `agent.py` runs on the device's Python and imports nothing of this
package.
"""
