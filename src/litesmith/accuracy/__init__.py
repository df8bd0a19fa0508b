"""How good answers are: metrics with intervals, and paired differences.

average_precision.py  COCO's average precision, and each image's influence on it
chance.py             whether a model beats guessing; if not, which preparation would
disagreement.py       the items that two models answer most differently, for display
evaluate.py           all models scored in one pass over the data
metrics.py            the metrics (`METRICS`), their 95 % intervals, and which one suits data and
                      model
paired.py             the interval of a metric, and of a difference on the same samples
retrieval.py          how often the nearest embedding is of the same class
scoring.py            from one sample to statistics, and from their means to the value
sharded.py            the same scores from workers of a Ray cluster, equal to the last digit

Two models are compared on the same samples, sample by sample; two separate intervals would hide
most differences. Samples are not batched: a batch was never faster than one sample on each core.
"""
