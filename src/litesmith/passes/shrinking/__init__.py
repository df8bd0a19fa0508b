"""Steps that leave fewer weights, fewer channels, or fewer different values.

arm_sparse.py         convolutions that XNNPACK computes without zeros on ARM
channel_choice.py     which channels go for a wanted speed
channel_cut.py        a model without some channels
channel_loss.py       what layers lose with channels that they read, from their moments
channel_refit.py      layers fitted to what they gave before
channel_rules.py      what each op says of its tensors' channels (`RULES`): which are one
channel_times.py      what ops take at other widths, measured on a target
channel_units.py      channels written side by side, in the order in which they may go
cluster.py            `cluster`: few values in each weight
prune.py              `prune`: weights that matter least become zero
prune_sensitivity.py  what each layer can lose, measured on the data
remove_channels.py    whole channels removed
restore.py            remaining weights solved to make up for the missing ones
sparsify.py           `sparsify`: fully connected weights stored without their zeros

Zeros stay zeros, and codes stay codes, through every later step and through training. Clustered
values lie on the int8 grid of their channel, so quantizing keeps the very codes.
"""
