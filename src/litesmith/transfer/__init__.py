"""A new head on an old network: what `retrain` does without torch.

backbone_norm.py  the normalisation of a backbone, if nobody states it
confusion.py      the confusion matrix and the worst mistakes
detector.py       a light head that tells boxes, and the op that chooses among them
embedding.py      the vector before the head, found and cut out
feature_maps.py   the maps of a backbone in which things can be found
head.py           the embedding of every item, kept for the next time; a head solved on them and
                  attached behind them
head_layers.py    the layers of a head of random weights on such maps
labelled_data.py  data with a class for every item, split into parts that share nothing
segmenter.py      a light head that tells the class of every pixel

Held-out items decide nothing: the parts are made first, by the contents of items, and normalisation
and penalty are chosen on the part that is learned from. Data split by hand in the same way gives
the same file to the byte.
"""
