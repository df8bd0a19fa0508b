"""`choose`: several models on the user's data and machine, and the one to take.

candidates.py     files, patterns and names of the catalogue as candidates, each once
choose_models.py  `choose` itself
choose_run.py     a choice in progress: the request, the candidates, the progress
choose_trials.py  builds, times and scores candidates unless they are on record
pick.py           the front, what is within the noise, the pick and its reason; the table
shared_data.py    the same samples for all candidates, prepared for each; backbones that learn them

All candidates take turns in one run, so a time is recorded together with the models it took turns
with. When a candidate is added, all are timed again, and only the new one is scored.
"""
