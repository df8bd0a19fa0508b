"""Steps that leave fewer weights, fewer channels, or fewer distinct values.

arm_sparse.py         convolutions that XNNPACK computes without zeros on ARM
channel_choice.py     which channels to remove for a wanted speed
channel_cut.py        a model without some channels
channel_loss.py       what layers lose without channels that they read, from moments
channel_refit.py      layers fitted to their former outputs
channel_rules.py      which positions of tensors are one channel, by kinds of ops (`RULES`)
channel_times.py      the times of ops at other widths, measured on a target
channel_units.py      channels written side by side, in the order of their removal
cluster.py            `cluster`: few values in each weight
prune.py              `prune`: weights that matter least become zero
prune_sensitivity.py  what each layer can lose, measured on the data
remove_channels.py    whole channels removed
restore.py            remaining weights solved to make up for the missing ones
sparsify.py           `sparsify`: fully connected weights stored without their zeros

Zeros stay zeros, and codes stay codes, through every later step and through training. Clustered
values lie on the int8 grid of their channel, so quantizing keeps exactly these codes.
"""
