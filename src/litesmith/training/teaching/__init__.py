"""`retrain`: a network learns the user's task by a new head, by its weights, or from nothing.

detector_goal.py     boxes: what a detector should predict for images
detector_loss.py     which places predict which objects, and how far answers are from them
finetune.py          a backbone and its new head trained together
from_scratch.py      a network of the catalogue from random weights, with batch normalization that
                     is folded away afterwards
moved_pictures.py    images zoomed, moved and mirrored, with their boxes and masks
picture_course.py    images, their random changes, and a network that trains on them
picture_result.py    a taught detector or segmenter: its score, curves, the worst images
picture_tasks.py     a row for detection and one for segmentation
picture_teaching.py  `retrain` for both: images opened, split, learned from and judged by
picture_training.py  a head trained, then the backbone with it
retrain_request.py   the request of `retrain`, and what training returns
retrain_result.py    its result and its record: a score for each class, the mistakes
retraining.py        `retrain`: data opened, prepared and split; a head solved, then fine-tuned if
                     asked
segmenter_goal.py    masks: what a segmenter should predict for images
"""
