"""`retrain`: a network learns the user's task, by a new head, by its weights, or from nothing.

detector_goal.py     boxes: what a detector is to tell of pictures
detector_loss.py     which places tell which things, and how far answers are from them
finetune.py          a backbone and its new head trained together
from_scratch.py      a network of the catalogue from random weights, with batch normalization that
                     is folded away afterwards
moved_pictures.py    pictures zoomed, moved and mirrored, with their boxes and masks
picture_course.py    pictures, what chance does to them, and a network that trains on them
picture_result.py    a taught detector or segmenter: its score, curves, the worst pictures
picture_tasks.py     a row for detection and one for segmentation
picture_teaching.py  `retrain` for both: pictures opened, split, learned from and judged by
picture_training.py  a head trained, then the backbone with it
retrain_request.py   what `retrain` is asked, what it returns, and what it leaves on record
retraining.py        `retrain`: data opened, prepared and split; a head solved, then fine-tuned if
                     asked
segmenter_goal.py    masks: what a segmenter is to tell of pictures
"""
