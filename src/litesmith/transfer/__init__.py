"""A new head on an old network: the part of `retrain` that needs no torch.

backbone_norm.py  the normalisation of a backbone, if it is not stated
confusion.py      the confusion matrix and the worst mistakes
detector.py       a light head that predicts boxes, and the op that selects among them
embedding.py      finding the vector before the head, and cutting the model there
feature_maps.py   the maps of a backbone in which objects can be found
head.py           the embedding of every item, cached; a head solved on the embeddings and attached
                  behind them
head_layers.py    the layers of a head with random weights on such maps
labelled_data.py  data with a class for every item, split into parts that share nothing
segmenter.py      a light head that predicts the class of every pixel

Held-out items decide nothing: the data is split first, by the contents of items, and normalisation
and penalty are chosen on the training part alone. Data split by hand in the same way gives the same
file, byte for byte.
"""
